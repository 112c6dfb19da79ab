import Base
import Forwarding
import Stage
import Wire

/// Which viewers are behind their stream's gate, what their seats receive because of that, and what they are notified
/// of.
///
/// Stands between what viewers should receive and what workers are commanded. A seat that is shut remains the
/// viewer's and receives nothing, so that it is filled again immediately when the viewer shows a token that opens the
/// gate.
///
/// Pure, like `LiveStreams`, which owns it.
struct ViewerGates {
    /// A token that a viewer has shown: the identity in it, and where it counts.
    struct Pass {
        let sender: Stage.Sender
        /// The streams for which the token counts.
        let scope: FeedReader.Scope
    }

    /// How a seat stands with the gate of its stream.
    private enum State: String {
        /// There is no gate, or it is open to the viewer.
        case open
        /// The viewer watches the time that every viewer gets for free.
        case free
        /// The viewer receives nothing.
        case shut
    }

    /// A seat that has a stream, whether or not it receives it.
    private struct Seat {
        let stream: StreamID
        /// Whether it is a neighbour in the feed, which uses no free time and shows nothing behind a gate.
        let isPreview: Bool
        var state: State
        /// Whether the stream has a source, so that there is something to watch.
        var isLive: Bool
        /// Whether the viewer's free time is running.
        var isCounting = false
    }

    /// A session that watches.
    private struct Member {
        let worker: Int
        let viewer: FreeViewing.Viewer
        /// Whether its client can be notified on a control channel; players by WHEP have none.
        let hasControl: Bool
        /// The token that the session was made with comes first, then the latest of the others.
        var passes: [Pass]
        var isConnected = false
        var seats: [Int: Seat] = [:]
    }

    /// Everything that decides to whom a stream's gate is open.
    private struct Terms: Equatable {
        let gate: StageDetails.Gate
        let host: ParticipantID?
        let speakers: Set<ParticipantID>
        /// The participants to whom a token opens nothing.
        ///
        /// Exactly as in the snapshot: snapshots share its storage until somebody is banned or let in again, so that
        /// comparing it costs nothing however many are banned.
        let banned: [ParticipantID: WallTime]
    }

    private let directory: StreamDirectory
    private var members: [SessionID: Member] = [:]
    /// The sessions that have a seat on each stream.
    private var watchers: [StreamID: Set<SessionID>] = [:]
    /// The terms of gated streams as they were last applied.
    private var terms: [StreamID: Terms] = [:]
    /// The free time that viewers of each stream have used.
    private var viewings: [StreamID: FreeViewing] = [:]
    /// The sessions whose free time is running.
    private var counting: [StreamID: Set<SessionID>] = [:]
    /// The earliest time at which one of those may have used up its free time; nil if none is running.
    private var deadline: MonotonicTime?

    /// The number of tokens that a session may show besides its first; the earliest of them is forgotten.
    private static let passLimit = 8

    init(directory: StreamDirectory) {
        self.directory = directory
    }

    // MARK: Sessions

    /// The gate that keeps a viewer from watching at all, because the free time is used up; nil if the viewer may
    /// watch.
    func refusal(of request: SessionRequest, at now: MonotonicTime) -> StageDetails.Gate? {
        guard let gate = directory.gate(of: request.stream, before: request.sender) else { return nil }
        let viewer = FreeViewing.Viewer(request.sender, at: request.clientAddress)
        return remaining(of: viewer, on: request.stream, behind: gate, at: now) > .zero ? nil : gate
    }

    /// Adds a new session that watches, with the token it was made with.
    mutating func enter(_ id: SessionID, _ request: SessionRequest, on worker: Int) {
        let reader = request.feed?.reader
        let first = request.sender.map {
            Pass(sender: $0, scope: reader.map(\.standing) ?? .one(request.stream))
        }
        members[id] = Member(
            worker: worker, viewer: FreeViewing.Viewer(request.sender, at: request.clientAddress),
            hasControl: request.purpose != .play, passes: [first].compactMap(\.self))
    }

    /// Notes that a session is connected, from which on its viewer's free time may run.
    mutating func connect(_ id: SessionID, at now: MonotonicTime) {
        guard let member = members[id] else { return }
        members[id]?.isConnected = true
        for pair in member.seats.keys.sorted() { count(id, pair, at: now) }
    }

    /// Removes a session that has ended.
    mutating func leave(_ id: SessionID, at now: MonotonicTime) {
        guard let member = members[id] else { return }
        for pair in member.seats.keys { vacate(id, pair, at: now) }
        members[id] = nil
    }

    /// Adds a token that a client shows for a session it already has.
    mutating func present(_ pass: Pass, by id: SessionID, at now: MonotonicTime) -> [LiveAction] {
        guard var member = members[id] else { return [] }
        let others = member.passes.dropFirst() + [pass]
        member.passes = member.passes.prefix(1) + others.suffix(Self.passLimit)
        members[id] = member
        return member.seats.keys.sorted().flatMap { reconsider(id, $0, at: now) }
    }

    // MARK: Seats

    /// Gives a session's seat a stream, as far as the gate allows, or none.
    /// - Parameters:
    ///   - stream: nil to empty the seat.
    ///   - isLive: whether there is something to watch.
    ///   - isTaken: whether the worker has put the seat on the stream already.
    mutating func seat(
        _ id: SessionID, pair: Int, on stream: StreamID?, isPreview: Bool, requested: MonotonicTime?,
        isLive: Bool, isTaken: Bool = false, at now: MonotonicTime
    ) -> [LiveAction] {
        guard let member = members[id] else { return [] }
        vacate(id, pair, at: now)
        guard let stream else { return [post(id, pair, nil, isPreview: false, requested: nil, member)] }
        let gate = gate(of: stream, before: member)
        let state = state(of: member, on: stream, behind: gate, isPreview: isPreview, at: now)
        members[id]?.seats[pair] = Seat(
            stream: stream, isPreview: isPreview, state: state, isLive: isLive)
        watchers[stream, default: []].insert(id)
        count(id, pair, at: now)
        let given = state == .shut ? nil : stream
        let isDone = isTaken && given != nil
        return (isDone ? [] : [post(id, pair, given, isPreview: isPreview, requested: requested, member)])
            + (gate == nil ? [] : tell(id, pair, at: now))
    }

    private func post(
        _ id: SessionID, _ pair: Int, _ stream: StreamID?, isPreview: Bool, requested: MonotonicTime?,
        _ member: Member
    ) -> LiveAction {
        .post(
            .seat(
                id, pair: pair, stream, isPreview: isPreview && stream != nil,
                requested: stream == nil ? nil : requested),
            worker: member.worker, of: .feed)
    }

    /// Takes the stream from a seat; the session still watches it if another seat has it, too.
    private mutating func vacate(_ id: SessionID, _ pair: Int, at now: MonotonicTime) {
        rest(id, pair, at: now)
        guard let seat = members[id]?.seats.removeValue(forKey: pair),
            members[id]?.seats.values.contains(where: { $0.stream == seat.stream }) == false
        else { return }
        watchers[seat.stream]?.remove(id)
        if watchers[seat.stream]?.isEmpty == true { watchers[seat.stream] = nil }
    }

    /// The gate between a session and a stream; nil if any of the session's tokens opens it.
    private func gate(of stream: StreamID, before member: Member) -> StageDetails.Gate? {
        guard let gate = directory.gate(of: stream, before: nil) else { return nil }
        let banned = directory[stream]?.banned ?? [:]
        let isOpen = member.passes.contains {
            $0.scope.contains(stream) && directory.gate(of: stream, before: $0.sender) == nil
                && ($0.sender.authority == .admin || banned[$0.sender.id] == nil)
        }
        return isOpen ? nil : gate
    }

    private func state(
        of member: Member, on stream: StreamID, behind gate: StageDetails.Gate?, isPreview: Bool,
        at now: MonotonicTime
    ) -> State {
        guard let gate else { return .open }
        guard !isPreview else { return .shut }
        return remaining(of: member.viewer, on: stream, behind: gate, at: now) > .zero ? .free : .shut
    }

    /// The free time that a viewer has left; sessions of the same viewer share it.
    private func remaining(
        of viewer: FreeViewing.Viewer, on stream: StreamID, behind gate: StageDetails.Gate,
        at now: MonotonicTime
    ) -> Duration {
        guard gate.freeSeconds > 0 else { return .zero }
        return (viewings[stream] ?? FreeViewing()).remaining(of: viewer, from: gate.freeSeconds, at: now)
    }

    /// Decides again whether a seat is shut.
    private mutating func reconsider(_ id: SessionID, _ pair: Int, at now: MonotonicTime) -> [LiveAction] {
        guard let member = members[id], let seat = member.seats[pair] else { return [] }
        let gate = gate(of: seat.stream, before: member)
        let state = state(of: member, on: seat.stream, behind: gate, isPreview: seat.isPreview, at: now)
        guard state != seat.state else {
            // The state is the same, but the gate's terms may be different.
            return gate == nil ? [] : tell(id, pair, at: now)
        }
        if state != .free { rest(id, pair, at: now) }
        members[id]?.seats[pair]?.state = state
        count(id, pair, at: now)
        let (was, given) = (seat.state == .shut, state == .shut ? nil : seat.stream)
        let isSame = was == (given == nil)
        return (isSame ? [] : [post(id, pair, given, isPreview: seat.isPreview, requested: nil, member)])
            + tell(id, pair, at: now)
    }

    // MARK: Time

    /// Starts a viewer's free time, if the viewer is connected and watches behind a gate.
    private mutating func count(_ id: SessionID, _ pair: Int, at now: MonotonicTime) {
        guard let member = members[id], let seat = member.seats[pair], member.isConnected, seat.isLive,
            seat.state == .free, !seat.isCounting,
            let gate = directory.gate(of: seat.stream, before: nil)
        else { return }
        members[id]?.seats[pair]?.isCounting = true
        viewings[seat.stream, default: FreeViewing()].begin(member.viewer, at: now)
        counting[seat.stream, default: []].insert(id)
        let end = now + remaining(of: member.viewer, on: seat.stream, behind: gate, at: now)
        deadline = deadline.map { min($0, end) } ?? end
    }

    /// Stops a viewer's free time, if it is running.
    private mutating func rest(_ id: SessionID, _ pair: Int, at now: MonotonicTime) {
        guard let member = members[id], let seat = member.seats[pair], seat.isCounting else { return }
        members[id]?.seats[pair]?.isCounting = false
        viewings[seat.stream]?.end(member.viewer, at: now)
        counting[seat.stream]?.remove(id)
        if counting[seat.stream]?.isEmpty == true { counting[seat.stream] = nil }
    }

    /// Shuts the seats of viewers whose free time is used up.
    mutating func advance(to now: MonotonicTime) -> [LiveAction] {
        guard let deadline, deadline <= now else { return [] }
        self.deadline = nil
        var actions: [LiveAction] = []
        for stream in counting.keys.sorted(by: { $0.description < $1.description }) {
            for id in counting[stream]?.sorted() ?? [] { actions += expire(id, on: stream, at: now) }
        }
        return actions
    }

    /// Shuts a seat if its viewer has no time left, or moves the deadline if there is some.
    private mutating func expire(
        _ id: SessionID, on stream: StreamID, at now: MonotonicTime
    ) -> [LiveAction] {
        guard let member = members[id], let gate = directory.gate(of: stream, before: nil),
            let pair = member.seats.first(where: { $0.value.stream == stream && $0.value.isCounting })?.key
        else { return [] }
        let left = remaining(of: member.viewer, on: stream, behind: gate, at: now)
        guard left > .zero else { return reconsider(id, pair, at: now) }
        deadline = deadline.map { min($0, now + left) } ?? now + left
        return []
    }

    // MARK: Streams

    /// Notes that a stream has a source, from which on viewers' free time runs.
    mutating func begin(_ stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        (watchers[stream] ?? []).sorted().flatMap { id in
            (members[id]?.seats ?? [:]).filter { $0.value.stream == stream }.keys.sorted().flatMap {
                pair -> [LiveAction] in
                members[id]?.seats[pair]?.isLive = true
                defer { count(id, pair, at: now) }
                return members[id]?.seats[pair]?.state == .open ? [] : reconsider(id, pair, at: now)
            }
        }
    }

    /// Applies the terms of a stream that may have another gate, or other participants on its stage.
    mutating func update(_ stream: StreamID, at now: MonotonicTime) -> [LiveAction] {
        let snapshot = directory[stream]
        if snapshot == nil || snapshot?.state == .ended { forget(stream, at: now) }
        let new = snapshot.flatMap { snapshot in
            snapshot.details.gate.map {
                Terms(
                    gate: $0, host: snapshot.host, speakers: snapshot.speakers, banned: snapshot.banned)
            }
        }
        let old = terms[stream]
        // Also if they are equal, because the next ones share their storage with these.
        terms[stream] = new
        guard old != new else { return [] }
        // The new terms may allow less free time than the old ones, so the running ones are checked soon.
        if counting[stream] != nil { deadline = now }
        return (watchers[stream] ?? []).sorted().flatMap { id in
            (members[id]?.seats ?? [:]).filter { $0.value.stream == stream }.keys.sorted().flatMap {
                reconsider(id, $0, at: now)
            }
        }
    }

    /// Resets the free time of a stream that has ended: if it begins again, all viewers have the whole time.
    private mutating func forget(_ stream: StreamID, at now: MonotonicTime) {
        for id in watchers[stream] ?? [] {
            for (pair, seat) in members[id]?.seats ?? [:] where seat.stream == stream {
                rest(id, pair, at: now)
                members[id]?.seats[pair]?.isLive = false
            }
        }
        viewings[stream] = nil
        if watchers[stream] == nil { terms[stream] = nil }
    }

    // MARK: What clients are told

    /// The state of the gate of the stream that a session watches; nil if there is no such session.
    func json(of id: SessionID, at now: MonotonicTime) -> JSON? {
        guard let member = members[id] else { return nil }
        let pair = member.seats.filter { !$0.value.isPreview }.keys.min()
        guard let pair else { return .object(["stream": .null, "state": .string(State.open.rawValue)]) }
        return .object(terms(member, pair, at: now))
    }

    /// Sends a session the state of its gates: its control channel has opened, or works again.
    func greet(_ id: SessionID, at now: MonotonicTime) -> [LiveAction] {
        guard let member = members[id] else { return [] }
        return member.seats.keys.sorted().filter { member.seats[$0]?.state != .open }.flatMap {
            tell(id, $0, at: now)
        }
    }

    /// Sends a session the state of a seat's gate; nothing about a preview, or without a control channel.
    private func tell(_ id: SessionID, _ pair: Int, at now: MonotonicTime) -> [LiveAction] {
        guard let member = members[id], member.hasControl, member.seats[pair]?.isPreview == false else {
            return []
        }
        var json = terms(member, pair, at: now)
        json["type"] = .string(ControlReply.Kind.gate.rawValue)
        return [.post(.sendControl(id, .string(JSON.object(json).bytes)), worker: member.worker, of: nil)]
    }

    /// The state of a seat and the gate's terms, with the remaining free time in seconds.
    private func terms(_ member: Member, _ pair: Int, at now: MonotonicTime) -> [String: JSON] {
        guard let seat = member.seats[pair] else { return [:] }
        let gate = gate(of: seat.stream, before: member)
        var json: [String: JSON] = [
            "stream": .string(seat.stream.description), "state": .string(seat.state.rawValue),
        ]
        guard let gate else { return json }
        let left = remaining(of: member.viewer, on: seat.stream, behind: gate, at: now)
        json["tier"] = .string(gate.tier)
        json["unlock"] = .text(gate.unlock)
        // Rounded up to a tenth of a second, so that it is 0 only when the time is used up.
        json["remaining"] = .number(
            seat.state == .free ? (Double(left.wholeNanoseconds) / 1e8).rounded(.up) / 10 : 0)
        return json
    }
}
