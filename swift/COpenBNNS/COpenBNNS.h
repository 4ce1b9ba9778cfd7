// The headers that the overlay is written on.
#include <Accelerate/Accelerate.h>
#include <bnns/bnns_extensions.h>
