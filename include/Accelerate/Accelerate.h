// Apple's path. Accelerate brings vecLib and, as programs written for it expect, these four of the C library.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vecLib/vecLib.h>
