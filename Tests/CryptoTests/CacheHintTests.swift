import Testing

@testable import Crypto

@Suite struct `A cache hint` {
    private final class Viewer {
        var words = [UInt64](repeating: 7, count: 64)
    }

    @Test func `does no harm once its object is gone`() {
        var viewer: Viewer? = Viewer()
        let hint = viewer.map { CacheHint($0, bytes: 1_024) }
        viewer = nil
        hint?.prefetch()
        CacheHint(address: 0, bytes: 1_024).prefetch()
        CacheHint(address: .max, bytes: 4_096).prefetch()
        CacheHint(address: 0x10_0000, bytes: -1).prefetch()
    }

    @Test func `does not keep its object alive`() {
        var viewer: Viewer? = Viewer()
        weak var observed: Viewer?
        observed = viewer
        let hint = viewer.map { CacheHint($0, bytes: 64) }
        viewer = nil
        #expect(observed == nil)
        hint?.prefetch()
    }
}
