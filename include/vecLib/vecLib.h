// Apple's path: of vecLib, OpenBNNS has BNNS.
#include <vecLib/BNNS/bnns.h>
