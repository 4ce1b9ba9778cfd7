// Apple's path: Accelerate brings BNNS and the C mathematics library.
#include <math.h>
#include <vecLib/vecLib.h>
