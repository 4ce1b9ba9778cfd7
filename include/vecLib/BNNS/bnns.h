// Apple's path to <bnns/bnns.h>.
#include <bnns/bnns.h>
