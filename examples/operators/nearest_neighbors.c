// cc -std=c99 nearest_neighbors.c -o nearest_neighbors -lbnns && ./nearest_neighbors
// prints: 0: sample 1, distance 10
// prints: 10: sample 2, distance 2
// prints: 12: sample 1, distance 2
// Of three samples, the one that is nearest to each besides itself.
#include "tensor.h"

int main(void) {
  float samples[3] = {0, 10, 12}, distance[2];
  int at[2];
  BNNSNearestNeighbors knn =
      BNNSCreateNearestNeighbors(3, 1, 2, BNNSDataTypeFloat32, NULL);  // capacity, features, neighbours
  int status = BNNSNearestNeighborsLoad(knn, 3, samples);
  for (int i = 0; i < 3; i++) {
    status |= BNNSNearestNeighborsGetInfo(knn, i, at, distance);
    printf("%g: sample %d, distance %g\n", (double)samples[i], at[1], (double)distance[1]);
  }
  BNNSDestroyNearestNeighbors(knn);
  return status;
}
