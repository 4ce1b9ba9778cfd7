// Apple's path: of vecLib, OpenBNNS has BNNS, the system's BLAS and LAPACK, and a part of vDSP and vForce
// (docs/veclib.md). BNNS alone needs -lbnns, the others -lAccelerate.
#include <vecLib/BNNS/bnns.h>
#include <vecLib/cblas.h>
#include <vecLib/clapack.h>
#include <vecLib/vDSP.h>
#include <vecLib/vForce.h>
