import Base
import Synchronization
import Testing

@testable import Net

@Suite(.timeLimit(.minutes(5))) struct `The door for callers by SRT` {
    private static let remote = TransportAddress(ip: IPAddress(ipv4: 0xC633_6401), port: 50_000)
    private static let other = TransportAddress(ip: IPAddress(ipv4: 0xC633_6402), port: 50_000)
    private static let start = MonotonicTime.zero + .seconds(100)

    /// A door whose callers `decide` decides about, as another thread would.
    private func makeDoor(
        limits change: (inout StreamServerLimits) -> Void = { _ in }, waker: Waker? = nil,
        deciding decide: @escaping @Sendable (SRTDoor, SRTCall) -> SRTRejection? = { door, call in
            _ = door.answer(nil, to: call.number)
            return nil
        }
    ) throws -> SRTDoor {
        var limits = StreamServerLimits()
        change(&limits)
        let made = Mutex<SRTDoor?>(nil)
        let door = SRTDoor(limits, waker: try waker ?? Waker()) { call in
            guard let door = made.withLock({ $0 }) else { return .notFound }
            return decide(door, call)
        }
        made.withLock { $0 = door }
        return door
    }

    /// Knocks, and says whether the caller was let in.
    private func isLetIn(
        _ door: SRTDoor, _ socket: Int32, from remote: TransportAddress = Self.remote
    ) -> Bool {
        door.knock(socket, from: remote, "s", at: Self.start) == nil
    }

    @Test func `lets in who may come, and tells the others why not`() throws {
        let door = try makeDoor(deciding: { door, call in
            switch call.streamID {
            case "unknown": return .notFound
            case "wrong":
                #expect(door.answer(.unauthorized, to: call.number)?.streamID == "wrong")
            default:
                #expect(door.answer(nil, to: call.number)?.number == call.number)
                // Nobody waits for another answer.
                let second = door.answer(.forbidden, to: call.number)?.number
                #expect(second == nil)
            }
            return nil
        })
        defer { door.close() }
        #expect(door.knock(1, from: Self.remote, "unknown", at: Self.start) == .notFound)
        #expect(door.knock(2, from: Self.remote, "wrong", at: Self.start) == .unauthorized)
        #expect(door.knock(3, from: Self.remote, "right", at: Self.start) == nil)
        let calls = (1...3).map { door.take(Int32($0)) }
        #expect(calls.map { $0?.streamID } == [nil, nil, "right"])
        #expect(calls[2]?.remote == Self.remote)
        let again = door.take(3)?.number
        #expect(again == nil)
        #expect(door.refused == 0, "which counts what the limits refuse")
    }

    @Test func `has so many waiting behind it, and so many in all`() throws {
        let door = try makeDoor(limits: { limits in
            (limits.total, limits.perAddress, limits.waiting) = (4, 3, 2)
        })
        defer { door.close() }
        #expect(isLetIn(door, 1) && isLetIn(door, 2))
        #expect(!isLetIn(door, 3))
        let first = try #require(door.take(1))
        #expect(isLetIn(door, 3))
        let second = try #require(door.take(2))
        // Three of one address are in.
        #expect(!isLetIn(door, 4))
        #expect(isLetIn(door, 4, from: Self.other))
        let third = try #require(door.take(3))
        #expect(!isLetIn(door, 5, from: Self.other), "four in all")
        #expect(door.refused == 3)
        for call in [first, second, third] { door.giveBack(call) }
        #expect(isLetIn(door, 5))
        // The library gives a socket to one caller at a time.
        #expect(!isLetIn(door, 5))
        #expect(door.refused == 4)
    }

    /// What is refused takes no place, so it can be refused for ever.
    @Test func `keeps no place for who was refused`() throws {
        let door = try makeDoor(
            limits: { limits in (limits.total, limits.perAddress, limits.waiting) = (2, 2, 2) },
            deciding: { door, call in
                if call.number.value.isMultiple(of: 2) { return .forbidden }
                _ = door.answer(.conflict, to: call.number)
                return nil
            })
        defer { door.close() }
        for number in 0..<100 as Range<Int32> {
            let rejection = door.knock(number, from: Self.remote, "s", at: Self.start)
            let expected = number.isMultiple(of: 2) ? SRTRejection.conflict : .forbidden
            #expect(rejection == expected)
        }
        #expect(door.refused == 0)
    }

    @Test func `gives up callers whose connection does not appear`() throws {
        let door = try makeDoor(limits: { limits in (limits.total, limits.perAddress) = (2, 2) })
        defer { door.close() }
        #expect(door.knock(1, from: Self.remote, "early", at: Self.start) == nil)
        #expect(door.knock(2, from: Self.remote, "late", at: Self.start + .seconds(1)) == nil)
        let soon = Self.start + SRTDoor.joinLimit - Duration.nanoseconds(1)
        #expect(door.takeLost(at: soon).isEmpty)
        let lost = door.takeLost(at: Self.start + SRTDoor.joinLimit)
        #expect(lost.map(\.streamID) == ["early"])
        let number = try #require(lost.first).number
        #expect(!door.expects(number))
        let gone = door.take(1)?.number
        #expect(gone == nil)
        let late = try #require(door.take(2))
        #expect(!door.expects(late.number))
        #expect(door.takeLost(at: Self.start + .seconds(60)).isEmpty)
        // The place is free again.
        #expect(isLetIn(door, 3))
        #expect(!isLetIn(door, 4))
    }

    /// The library's thread must not wait for longer than a moment.
    @Test func `lets in about whom nothing is said, and has the server look`() throws {
        let waker = try Waker()
        let asked = Mutex<[SRTCall]>([])
        let door = try makeDoor(
            waker: waker,
            deciding: { _, call in
                asked.withLock { $0.append(call) }
                return nil
            })
        defer { door.close() }
        #expect(!waker.isPending)
        #expect(isLetIn(door, 1))
        #expect(waker.isPending)
        let call = try #require(asked.withLock { $0.first })
        #expect(door.expects(call.number))
        let late = door.answer(.forbidden, to: call.number)?.number
        #expect(late == nil)
        #expect(door.take(1)?.number == call.number)
    }

    /// The library might use a number again before the server has seen that the first caller is gone.
    @Test func `has one caller at a time by a socket, and gives the place of another back`() throws {
        let door = try makeDoor(limits: { limits in limits.perAddress = 2 })
        defer { door.close() }
        #expect(isLetIn(door, 1))
        #expect(!isLetIn(door, 1))
        #expect(door.refused == 1)
        // What the second one occupied is free again.
        #expect(isLetIn(door, 2))
        #expect(!isLetIn(door, 3))
        let first = try #require(door.take(1))
        let again = door.take(1)?.number
        #expect(again == nil && !door.expects(first.number))
        // An accepted caller keeps its place until its connection is gone.
        #expect(!isLetIn(door, 1))
        door.giveBack(first)
        #expect(isLetIn(door, 1))
        let second = door.take(1)?.number
        #expect(second != nil && second != first.number)
    }

    @Test func `is shut for everybody once it is closed`() throws {
        let door = try makeDoor(limits: { limits in (limits.total, limits.perAddress) = (1, 1) })
        door.close()
        for socket in 0..<5 as Range<Int32> {
            #expect(door.knock(socket, from: Self.remote, "s", at: Self.start) == .overload)
            let taken = door.take(socket)?.number
            #expect(taken == nil)
        }
        #expect(door.refused == 0)
    }
}
