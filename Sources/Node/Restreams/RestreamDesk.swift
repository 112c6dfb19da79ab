import Base
import Forwarding
import Net
import Recordings
import Restream
import Transcoder

/// Which targets streams' programmes may be sent to, and to how many.
package struct RestreamSettings: Sendable {
    /// Of all streams, at once.
    package let limit: Int
    package let networks: TargetNetworks

    /// - Parameter limit: 0 for none.
    package init(limit: Int, toPrivateNetworks: Bool = false) {
        self.limit = limit
        networks = toPrivateNetworks ? .all : .publicOnly
    }
}

/// Sends live streams' programmes on to the targets that their hosts named, and tries those again that fail.
///
/// Each target has a connection, and a thread, of its own, so that one holds up no other. They share the encode that
/// HLS has too, which goes on as long as one of them takes it.
package actor RestreamDesk {
    /// What is counted.
    package struct Counters: Equatable, Sendable {
        /// Connections that there are, those that have not come so far included.
        package var connections = 0
        package var live = 0
        /// Targets that failed, and wait for their next try.
        package var failed = 0
        /// Connections that were begun.
        package var attempts: UInt64 = 0
        /// Of them, those that failed.
        package var failures: UInt64 = 0
        package var bytes: UInt64 = 0
        /// Pictures that were left out because targets were too slow.
        package var dropped: UInt64 = 0
    }

    /// What is told of connections that the desk began.
    private enum Event: InboxElement {
        case live(StreamID, Int, UInt64)
        case ended(StreamID, Int, UInt64, RestreamFailure?)

        enum Topic: Hashable, Sendable {}

        /// There are two of each connection.
        var topic: Topic? { nil }
        var isNeeded: Bool { true }
    }

    private struct Connection {
        /// Never used twice.
        let attempt: UInt64
        let stream: OutgoingStream<RestreamConversation>
        let meter: RestreamMeter
        /// Since when the target takes the stream; nil before.
        var liveSince: MonotonicTime?
    }

    private struct Entry {
        let target: RestreamTarget
        var status: RestreamStatus
        var schedule = RestreamSchedule()
        var connection: Connection?
        /// When it is tried again; nil where it did not fail.
        var retryAt: MonotonicTime?
        /// Whether webhooks were told of the failure.
        var isFailureTold = false
    }

    private struct Stream {
        var isLive = false
        var programme: RecordingDesk.Programme?
        /// By number.
        var entries: [Int: Entry] = [:]
    }

    /// Told of each change, with the webhook's event where there is one.
    typealias Listener = @Sendable (StreamID, RestreamStatus, _ event: String?) async -> Void

    /// When a target is looked at again for which there was no place.
    private static let placeWait = Duration.seconds(10)

    private let settings: RestreamSettings
    private let packagings: PackagingDesk
    private let now: @Sendable () -> Moment
    private let log: Log
    private var streams: [StreamID: Stream] = [:]
    /// Attempts whose connection has not ended, and whose bytes and pictures are not in `counted` yet.
    private var open: [UInt64: RestreamMeter] = [:]
    private var lastAttempt: UInt64 = 0
    private var counted = Counters()
    private var isStopped = false
    private let inbox = Inbox<Event>(limit: 1_024)
    private var listener: Task<Void, Never>?
    private var tell: Listener = { _, _, _ in }

    init(
        _ settings: RestreamSettings, packagings: PackagingDesk, log: Log,
        now: @escaping @Sendable () -> Moment
    ) {
        self.settings = settings
        self.packagings = packagings
        self.log = log.subsystem("restream")
        self.now = now
    }

    /// Begins to act on what connections tell.
    func start(_ tell: @escaping Listener) {
        guard listener == nil else { return }
        self.tell = tell
        listener = Task { [inbox, weak self] in
            for await _ in inbox.news {
                for event in inbox.takeAll() { await self?.take(event) }
            }
        }
    }

    /// Says goodbye to all targets, and begins nothing any more.
    func stop() async {
        isStopped = true
        for (stream, known) in streams {
            for number in known.entries.keys { await disconnect(number, of: stream) }
        }
        streams = [:]
        listener?.cancel()
        inbox.close()
    }

    /// What waits for the desk.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// As of now.
    package var counters: Counters {
        var result = counted
        result.connections = open.count
        for meter in open.values {
            let values = meter.current
            result.bytes &+= values.bytes
            result.dropped &+= values.dropped
        }
        for entry in streams.values.flatMap(\.entries.values) {
            switch entry.status.state {
            case .live: result.live += 1
            case .failed: result.failed += 1
            case .waiting, .connecting: break
            }
        }
        return result
    }

    // MARK: What is wanted

    /// A target as it does now; as one that waits where nothing is known of it.
    func status(of target: RestreamTarget, in stream: StreamID) -> RestreamStatus {
        guard var status = streams[stream]?.entries[target.number]?.status else {
            return RestreamStatus(
                number: target.number, address: target.address, state: .waiting, since: now().wall)
        }
        status.dropped = streams[stream]?.entries[target.number]?.connection?.meter.current.dropped ?? 0
        return status
    }

    /// Takes in what is to be sent where.
    /// - Parameter programme: what viewers get; nil for nothing.
    func update(
        _ stream: StreamID, to targets: [RestreamTarget], isLive: Bool, _ programme: RecordingDesk.Programme?
    ) async {
        guard !isStopped, !targets.isEmpty || streams[stream] != nil else { return }
        var known = streams[stream] ?? Stream()
        known.isLive = isLive
        known.programme = programme
        let gone = known.entries.keys.filter { number in !targets.contains { $0.number == number } }
        for target in targets where known.entries[target.number] == nil {
            known.entries[target.number] = Entry(target: target, status: status(of: target, in: stream))
        }
        streams[stream] = known
        for number in gone {
            let entry = streams[stream]?.entries.removeValue(forKey: number)
            await close(entry?.connection, number, of: stream)
        }
        if !isLive {
            for number in targets.map(\.number) { await disconnect(number, of: stream) }
        }
        if targets.isEmpty { streams[stream] = nil }
        await packagings.update(stream, to: programme)
        // A programme that is interrupted goes on with its last picture, but none begins without one.
        guard isLive, programme != nil else { return }
        for number in targets.map(\.number) {
            guard let entry = streams[stream]?.entries[number], entry.connection == nil,
                entry.retryAt == nil
            else { continue }
            await connect(number, of: stream)
        }
    }

    /// Does what is due; called every second.
    /// - Parameter ended: whether a stream has ended.
    func advance(ended: @Sendable (StreamID) -> Bool) async {
        let time = now().elapsed
        for (stream, known) in streams {
            guard !ended(stream) else {
                await update(stream, to: [], isLive: false, nil)
                continue
            }
            for (number, entry) in known.entries {
                guard known.isLive, let retryAt = entry.retryAt, time >= retryAt else { continue }
                await connect(number, of: stream)
            }
        }
    }

    // MARK: Connections

    private func connect(_ number: Int, of stream: StreamID) async {
        guard !isStopped, var entry = streams[stream]?.entries[number], entry.connection == nil else {
            return
        }
        guard open.count < settings.limit else {
            return await fail(number, of: stream, .full, after: .zero, retryIn: Self.placeWait)
        }
        lastAttempt += 1
        let (attempt, target, meter) = (lastAttempt, entry.target, RestreamMeter())
        let networks = settings.networks
        let destination = OutgoingTarget(
            host: target.address.host, port: target.address.port, isSecure: target.address.isSecure,
            permits: { networks.permits($0) })
        do throws(NetError) {
            let connection = try OutgoingStream<RestreamConversation>(
                to: destination, name: "restream",
                make: { [inbox] now in
                    RestreamConversation(to: target, meter, at: now) {
                        inbox.put(.live(stream, number, attempt))
                    }
                },
                ended: { [inbox] end in
                    inbox.put(.ended(stream, number, attempt, meter.current.failure ?? RestreamFailure(end)))
                })
            entry.connection = Connection(attempt: attempt, stream: connection, meter: meter)
        } catch {
            return await fail(number, of: stream, .unreachable("\(error)"), after: .zero)
        }
        entry.retryAt = nil
        streams[stream]?.entries[number] = entry
        open[attempt] = meter
        counted.attempts &+= 1
        await change(number, of: stream, to: .connecting)
    }

    /// Says goodbye to a target, which waits from then on.
    private func disconnect(_ number: Int, of stream: StreamID) async {
        guard let entry = streams[stream]?.entries[number] else { return }
        streams[stream]?.entries[number]?.connection = nil
        streams[stream]?.entries[number]?.retryAt = nil
        await close(entry.connection, number, of: stream)
        if entry.status.state != .waiting { await change(number, of: stream, to: .waiting) }
    }

    private func close(_ connection: Connection?, _ number: Int, of stream: StreamID) async {
        guard let connection else { return }
        connection.stream.tell(.end)
        connection.stream.stop()
        await packagings.endListening(connection.attempt, to: stream)
        log.info("restream.ended", ["stream": stream, "number": number])
    }

    private func take(_ event: Event) async {
        switch event {
        case .live(let stream, let number, let attempt): await begin(number, of: stream, attempt)
        case .ended(let stream, let number, let attempt, let failure):
            await packagings.endListening(attempt, to: stream)
            if let values = open.removeValue(forKey: attempt)?.current {
                counted.bytes &+= values.bytes
                counted.dropped &+= values.dropped
            }
            guard let connection = streams[stream]?.entries[number]?.connection,
                connection.attempt == attempt
            else { return }
            streams[stream]?.entries[number]?.connection = nil
            counted.failures &+= 1
            let lived = connection.liveSince.map { now().elapsed - $0 } ?? .zero
            await fail(number, of: stream, failure ?? .closed, after: lived)
        }
    }

    /// A target takes the stream: it gets what the encoder makes.
    private func begin(_ number: Int, of stream: StreamID, _ attempt: UInt64) async {
        guard let known = streams[stream], let connection = known.entries[number]?.connection,
            connection.attempt == attempt
        else { return }
        streams[stream]?.entries[number]?.connection?.liveSince = now().elapsed
        streams[stream]?.entries[number]?.isFailureTold = false
        let outgoing = connection.stream
        await packagings.listen(to: stream, known.programme, as: attempt) { [weak outgoing] report in
            guard let media = RestreamMedia(report) else { return }
            outgoing?.tell(.media(media))
        }
        guard streams[stream]?.entries[number]?.connection?.attempt == attempt else {
            return await packagings.endListening(attempt, to: stream)
        }
        log.info("restream.live", fields(stream, known.entries[number]?.target))
        await change(number, of: stream, to: .live, event: "restream.live")
    }

    private func fail(
        _ number: Int, of stream: StreamID, _ failure: RestreamFailure, after lived: Duration,
        retryIn fixed: Duration? = nil
    ) async {
        guard var entry = streams[stream]?.entries[number] else { return }
        var random = SystemRandomNumberGenerator()
        let wait = fixed ?? entry.schedule.fail(after: lived, using: &random)
        let moment = now()
        entry.retryAt = moment.elapsed + wait
        let isNew = !entry.isFailureTold
        entry.isFailureTold = true
        streams[stream]?.entries[number] = entry
        let milliseconds = Int64(wait / .milliseconds(1))
        let next = WallTime(milliseconds: moment.wall.milliseconds + milliseconds)
        if isNew {
            log.warning(
                "restream.failed",
                [
                    "stream": stream, "number": number, "host": entry.target.address.host,
                    "reason": failure.name, "detail": failure.text, "retry": milliseconds,
                ])
        }
        // Webhooks are told once, and not of each try.
        await change(
            number, of: stream, to: .failed(failure, nextTry: next), event: isNew ? "restream.failed" : nil)
    }

    private func change(
        _ number: Int, of stream: StreamID, to state: RestreamStatus.State, event: String? = nil
    ) async {
        guard var status = streams[stream]?.entries[number]?.status else { return }
        status.state = state
        status.since = now().wall
        streams[stream]?.entries[number]?.status = status
        await tell(stream, status, event)
    }

    private func fields(
        _ stream: StreamID, _ target: RestreamTarget?
    ) -> KeyValuePairs<String, any CustomStringConvertible> {
        ["stream": stream, "number": target?.number ?? 0, "host": target?.address.host ?? ""]
    }
}
