import Base
import Peer
import TestSupport
import Testing

@testable import Forwarding

@Suite struct `A need of renditions` {
    private func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9) + 1_000_000_000)
    }

    /// When it is to begin, of the times at which it is said.
    private func begins(_ times: [Double]) -> [Double] {
        var demand = RenditionDemand(at: time(0))
        var found: [Double] = []
        for seconds in times where demand.note(at: time(seconds)) { found.append(seconds) }
        return found
    }

    @Test func `a need counts only after it has lasted for a moment`() {
        #expect(begins([0, 0.2, 0.3, 0.4]) == [0.3])
    }

    @Test func `a need starts anew after a pause`() {
        #expect(begins([1.5, 1.7, 1.9]) == [1.9])
    }

    @Test func `a need ends ten seconds after it was last reported`() {
        var demand = RenditionDemand(at: time(0))
        _ = demand.note(at: time(3))
        #expect(demand.deadline == time(13))
    }

    private func note(_ board: RenditionBoard, _ track: UInt64, at seconds: Double) {
        var random = SeededGenerator(seed: track)
        let published = PublishedTrack(
            key: TrackKey(worker: 0, track: TrackID(number: track)), plan: RenditionLayer.plan,
            extensions: ExtensionIDs())
        board.note(published, of: SessionID(using: &random), at: time(seconds))
    }

    private func notices(of board: RenditionBoard) -> [String] {
        board.takeNotices().map { "\($0.track.key.track.number) \($0.isWanted)" }
    }

    @Test func `a need is announced once when it begins, and once when it ends`() {
        let board = RenditionBoard()
        #expect(board.deadline == nil)
        for tenth in 0..<20 { note(board, 1, at: Double(tenth) / 10) }
        note(board, 2, at: 1)
        #expect(notices(of: board) == ["1 true"])
        board.advance(to: time(11.8))
        #expect(notices(of: board).isEmpty && board.deadline == time(11.9))
        board.advance(to: time(11.9))
        #expect(notices(of: board) == ["1 false"] && board.deadline == nil)
    }

    @Test func `a need ends with its track`() {
        let board = RenditionBoard()
        for tenth in 0..<5 { note(board, 1, at: Double(tenth) / 10) }
        _ = notices(of: board)
        note(board, 2, at: 1)
        board.forget(TrackID(number: 1))
        // Nobody was told of it.
        board.forget(TrackID(number: 2))
        #expect(notices(of: board) == ["1 false"])
        board.advance(to: time(60))
        #expect(notices(of: board).isEmpty && board.deadline == nil)
    }
}
