// Apple's path to <bnns/bnns_constants.h>.
#include <bnns/bnns_constants.h>
