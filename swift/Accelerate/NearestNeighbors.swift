// The k nearest of a store of samples.

extension BNNS {
  /// The nearest of a store of samples, by the Euclidean distance. A sample is its own first neighbor, at distance 0.
  ///
  /// Its functions do not throw: what they refuse leaves a reason (`BNNS.lastErrorReason`), and writes nothing.
  public struct NearestNeighbors {
    /// The store, released with its last copy.
    private final class Store {
      let store: BNNSNearestNeighbors?
      var loaded = 0
      init(_ store: BNNSNearestNeighbors?) { self.store = store }
      deinit { if let store { BNNSDestroyNearestNeighbors(store) } }
    }
    private let store: Store
    private let dimensionCount, neighborCount: Int
    private let dataType: BNNSDataType

    /// An empty store.
    /// - Parameters:
    ///   - capacity: How many samples it can hold.
    ///   - dimensionCount: Numbers of a sample.
    ///   - neighborCount: Neighbors that a question asks for.
    ///   - dataType: Float or Float16.
    public init(capacity: Int, dimensionCount: Int, neighborCount: Int, dataType: BNNSDataType) {
      self.dimensionCount = dimensionCount
      self.neighborCount = neighborCount
      self.dataType = dataType
      guard let c = UInt32(exactly: capacity), let d = UInt32(exactly: dimensionCount), let n = UInt32(exactly: neighborCount)
      else {
        _ = Call("NearestNeighbors").refusal(.unableToCreateLayer, "a count is negative, or exceeds 32 bits")
        store = Store(nil)
        return
      }
      store = Store(BNNSCreateNearestNeighbors(c, d, n, dataType, nil))
    }

    /// Appends samples, one after the other in memory: as many as the array has elements over `dimensionCount`.
    public func append(samples: BNNSNDArrayDescriptor) {
      let call = Call(NearestNeighbors.self, "append")
      guard let store = live(call) else { return }
      let s = samples.sampleSize
      guard let data = packed(call, "samples", samples, dataType) else { return }
      guard s.count % dimensionCount == 0, let count = UInt32(exactly: s.count / dimensionCount) else {
        refuse(call, "\(s.count) elements are not a whole number of samples of \(dimensionCount)")
        return
      }
      if BNNSNearestNeighborsLoad(store, count, data) == 0 { self.store.loaded += Int(count) }
    }

    /// The neighbors of a sample, nearest first, or of all of them, one row each.
    /// - Parameters:
    ///   - index: The sample; nil: all.
    ///   - outputIndices: Receives Int32 numbers of samples; without data: not wanted.
    ///   - outputDistances: Receives distances, in the type of the samples; without data: not wanted.
    public func apply(index: Int?, outputIndices: BNNSNDArrayDescriptor, outputDistances: BNNSNDArrayDescriptor) {
      let call = Call(NearestNeighbors.self, "apply")
      guard let store = live(call) else { return }
      guard let number = Int32(exactly: index ?? -1), index ?? 0 >= 0 else {
        refuse(call, "there is no sample \(index!)")
        return
      }
      let needed = neighborCount * (index == nil ? self.store.loaded : 1)
      for (label, d, type) in [
        ("outputIndices" as StaticString, outputIndices, BNNSDataTypeInt32), ("outputDistances", outputDistances, dataType),
      ] where d.data != nil {
        guard packed(call, label, d, type) != nil else { return }
        let count = d.sampleSize.count
        if count < needed {
          refuse(call, "\(label) have \(counted(count, "element")), expected \(needed)")
          return
        }
      }
      _ = BNNSNearestNeighborsGetInfo(
        store, number, outputIndices.data?.assumingMemoryBound(to: Int32.self), outputDistances.data)
    }

    private func refuse(_ call: Call, _ reason: String) { _ = call.refusal(.layerApplyFail, reason) }

    private func live(_ call: Call) -> BNNSNearestNeighbors? {
      if store.store == nil { refuse(call, "the store could not be made") }
      return store.store
    }

    /// The C calls take bare pointers, so that only we can compare.
    private func packed(_ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor, _ type: BNNSDataType)
      -> UnsafeMutableRawPointer?
    {
      let s = d.sampleSize
      if d.data == nil {
        refuse(call, "\(label): the descriptor has no data")
      } else if s.count != s.span {
        refuse(call, "\(label) have gaps: \(s.count) elements over \(s.span), the store takes packed rows")
      } else if d.data_type != type {
        refuse(call, "\(label) are \(d.data_type.text), the store takes \(type.text)")
      } else {
        return d.data
      }
      return nil
    }
  }
}
