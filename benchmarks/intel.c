/* Lets MKL, which torch multiplies matrices with, take the code it has for Intel's processors.

   It asks these functions of its own which code to take. On another maker's processor the sums of
   a product are added up in another order otherwise, and the last digits differ.

       cc -shared -fPIC -o /tmp/intel.so benchmarks/intel.c
       LD_PRELOAD=/tmp/intel.so OPENBLAS_CORETYPE=SKYLAKEX kergnn reproduce NCI1

   What numpy and scipy multiply, they do by OpenBLAS, which the second variable tells.
*/
int mkl_serv_intel_cpu(void) { return 1; }
int mkl_serv_intel_cpu_true(void) { return 1; }
int mkl_serv_cpuiszen(void) { return 0; }
