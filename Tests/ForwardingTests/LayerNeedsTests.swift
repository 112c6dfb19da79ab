import Base
import TestSupport
import Testing
import Wire

@testable import Forwarding

@Suite struct `Sets of simulcast layers` {
    @Test func `a set of layers ignores indices that no track may have`() {
        for index in 0..<Track.layerLimit { #expect(LayerSet(index).rawValue == 1 << UInt8(index)) }
        for index in [-1, Track.layerLimit, 7, 8, 64, .max, .min] { #expect(LayerSet(index).isEmpty) }
        for rendition in RenditionLayer.allCases { #expect(LayerSet(rendition.index).isEmpty) }
    }
}

@Suite struct `Layers that are used` {
    private var needs = LayerNeeds()
    private static let all: LayerSet = [LayerSet(0), LayerSet(1), LayerSet(2)]

    private func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9) + 1_000_000_000)
    }

    private mutating func advance(
        _ seconds: Double, taking taken: LayerSet = [], sent: LayerSet = all, least: Int = 2
    ) -> Bool {
        needs.note(taken, at: time(seconds))
        return needs.advance(sent: sent, least: least, at: time(seconds))
    }

    @Test mutating func `rest after five seconds in which nobody took them, but never the least`() {
        var changes: [Double] = []
        for tenth in 0...200 {
            let hasChanged = advance(Double(tenth) / 10, taking: tenth <= 30 ? LayerSet(0) : [])
            if hasChanged { changes.append(Double(tenth) / 10) }
        }
        // The middle one was never taken, and the first one until the third second.
        #expect(changes == [5, 8])
        #expect(needs.resting == [LayerSet(0), LayerSet(1)])
    }

    @Test mutating func `come back at once, and rest as long after that`() {
        _ = advance(0)
        _ = advance(6)
        #expect(needs.resting == [LayerSet(0), LayerSet(1)])
        var hasChanged = advance(7, taking: LayerSet(1), sent: LayerSet(2))
        #expect(hasChanged && needs.resting == LayerSet(0))
        hasChanged = advance(11.9, sent: [LayerSet(1), LayerSet(2)])
        #expect(!hasChanged)
        hasChanged = advance(12, sent: [LayerSet(1), LayerSet(2)])
        #expect(hasChanged && needs.resting == [LayerSet(0), LayerSet(1)])
    }

    @Test mutating func `a layer that becomes the lowest is called back, and only sent layers may rest`() {
        _ = advance(0)
        _ = advance(6)
        // A phone is turned: now the first one is the smallest.
        var hasChanged = advance(7, least: 0)
        #expect(hasChanged && needs.resting == LayerSet(1))
        hasChanged = advance(20, sent: LayerSet(0), least: 0)
        #expect(!hasChanged, "of the last one it is not known whether it could be sent")
        #expect(needs.resting == LayerSet(1))
        hasChanged = advance(21, least: 0)
        #expect(hasChanged && needs.resting == [LayerSet(1), LayerSet(2)])
    }

    @Test mutating func `do not rest because a clock went back`() {
        _ = advance(10)
        for seconds in [3, 0, 9, 14.9] {
            let hasChanged = advance(seconds)
            #expect(!hasChanged)
        }
        #expect(needs.resting.isEmpty)
    }
}

@Suite struct `The rest of a layer` {
    private var rest = LayerRest()
    private let memory = LayerRest.Memory(
        bitrate: 500_000, resolution: VideoResolution(width: 640, height: 360))

    private func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9) + 1_000_000_000)
    }

    @Test mutating func `a resting layer's bitrate is remembered until two seconds after its call`() {
        #expect(rest.memory == nil && rest.bitrate(isSent: true, at: time(0)) == nil)
        rest.begin(memory, at: time(0))
        #expect(rest.memory == memory)
        #expect(rest.bitrate(isSent: false, at: time(60)) == 500_000)
        rest.callBack(isSent: false, at: time(60))
        #expect(rest.memory == nil, "it does not rest any more")
        #expect(rest.bitrate(isSent: false, at: time(61.9)) == 500_000)
        #expect(rest.bitrate(isSent: true, at: time(61.9)) == 500_000)
        #expect(rest.bitrate(isSent: false, at: time(62)) == nil)
    }

    @Test mutating func `a layer that is sent on for two seconds while it rests has its measured rate`() {
        rest.begin(memory, at: time(0))
        #expect(rest.bitrate(isSent: true, at: time(1.9)) == 500_000)
        #expect(rest.bitrate(isSent: true, at: time(2)) == nil)
        // From then on the measured rate counts.
        rest.callBack(isSent: true, at: time(3))
        #expect(rest.memory == nil && rest.bitrate(isSent: true, at: time(3)) == nil)
    }

    @Test mutating func `calling a layer back again changes nothing`() {
        rest.callBack(isSent: false, at: time(0))
        #expect(rest.bitrate(isSent: false, at: time(0)) == nil)
        rest.begin(memory, at: time(1))
        rest.callBack(isSent: false, at: time(2))
        rest.callBack(isSent: false, at: time(3.9))
        #expect(rest.bitrate(isSent: false, at: time(4)) == nil, "the first call counts")
        let other = LayerRest.Memory(bitrate: 90_000, resolution: nil)
        rest.begin(other, at: time(5))
        #expect(rest.memory == other && rest.bitrate(isSent: false, at: time(5)) == 90_000)
    }
}
