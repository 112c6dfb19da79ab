import TestSupport
import Testing

@testable import Base

/// An element of a lane.
private struct Parcel: InboxElement {
    let lane: String
    let number: Int
    var topic: String?
    var isNeeded = true
}

@Suite(.timeLimit(.minutes(10))) struct `Elements of an inbox in lanes` {
    private let inbox = Inbox<Parcel>(limit: 3)
    private let begun = Watched<[Parcel]>([])
    private let handled = Watched<[Parcel]>([])
    /// The lanes whose elements have to wait.
    private let held = Watched<Set<String>>(["a"])

    private func handleAll() -> Task<Void, Never> {
        let lanes = InboxLanes(of: inbox) { $0.lane }
        return Task { [begun, handled, held] in
            await lanes.handle { parcel in
                begun.change { $0.append(parcel) }
                try? await held.wait { !$0.contains(parcel.lane) }
                handled.change { $0.append(parcel) }
            }
        }
    }

    @Test func `are handled in order within a lane, and wait for no other lane`() async throws {
        let handling = handleAll()
        for number in 1...2 {
            inbox.put(Parcel(lane: "a", number: number))
            inbox.put(Parcel(lane: "b", number: number))
        }
        try await handled.wait { $0.count == 2 }
        #expect(handled.value.map(\.lane) == ["b", "b"])
        held.change { $0 = [] }
        try await handled.wait { $0.count == 4 }
        #expect(handled.value.map(\.number) == [1, 2, 1, 2])
        handling.cancel()
        await handling.value
    }

    @Test func `stay in the inbox, under its rules, while their lane is busy`() async throws {
        let handling = handleAll()
        inbox.put(Parcel(lane: "a", number: 1))
        try await begun.wait { $0.count == 1 }
        inbox.put(Parcel(lane: "a", number: 2, topic: "report"))
        inbox.put(Parcel(lane: "b", number: 1))
        // By now the other one of that lane was left where it is.
        try await handled.wait { $0.count == 1 }
        inbox.put(Parcel(lane: "a", number: 3, topic: "report"))
        for number in 4...5 { inbox.put(Parcel(lane: "a", number: number)) }
        let isKept = inbox.put(Parcel(lane: "a", number: 6, isNeeded: false))
        #expect(!isKept)
        #expect(inbox.counters == InboxCounters(waiting: 3, dropped: 1))
        held.change { $0 = [] }
        try await handled.wait { $0.count == 5 }
        #expect(handled.value.map(\.number) == [1, 1, 3, 4, 5])
        handling.cancel()
        await handling.value
    }

    @Test func `are all handled, however many come while others are`() async throws {
        let handling = handleAll()
        held.change { $0 = [] }
        for number in 1...1_000 { inbox.put(Parcel(lane: "\(number % 7)", number: number)) }
        try await handled.wait { $0.count == 1_000 }
        for lane in 0..<7 {
            let numbers = handled.value.filter { $0.lane == "\(lane)" }.map(\.number)
            let expected = (1...1_000).filter { $0 % 7 == lane }
            #expect(numbers == expected)
        }
        handling.cancel()
        await handling.value
    }
}
