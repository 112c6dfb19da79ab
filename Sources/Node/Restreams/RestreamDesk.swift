import Base
import Forwarding
import Net
import Recordings
import Restream
import Transcoder

/// How many targets programmes may be sent to, and on which networks.
package struct RestreamSettings: Sendable {
    /// Connections of all streams at the same time; 0 for no restreams.
    package let limit: Int
    /// The networks on which targets may be.
    ///
    /// Hosts name the targets, so by default the operator's own networks are excluded.
    package let networks: TargetNetworks

    /// - Parameter limit: connections at the same time; 0 for no restreams.
    package init(limit: Int, toPrivateNetworks: Bool = false) {
        self.limit = limit
        networks = toPrivateNetworks ? .all : .publicOnly
    }

    /// Whether programmes may be sent to an address.
    ///
    /// A machine's own public address counts as one of its private ones: from there it also serves what a firewall
    /// keeps from the Internet.
    /// - Parameter own: the addresses of this machine.
    func permits(_ address: IPAddress, own: @autoclosure () -> [IPAddress]) -> Bool {
        networks.permits(address) && (networks == .all || !own().contains(address))
    }
}

/// Sends live streams' programmes to the targets that their hosts named, and retries those that fail.
///
/// Each target has its own connection and thread, so that a slow one delays no other. All targets of a stream share
/// one encode, also with HLS. It runs for as long as one of them takes it.
package actor RestreamDesk {
    /// Counts for monitoring.
    package struct Counters: Equatable, Sendable {
        /// Connections now, including those that are being set up or are closing.
        package var connections = 0
        /// Targets that take their programme now.
        package var live = 0
        /// Targets that failed and wait for a retry.
        package var failed = 0
        /// Connections that were started.
        package var attempts: UInt64 = 0
        /// Connections that failed.
        package var failures: UInt64 = 0
        /// Bytes sent to targets, or queued for them.
        package var bytes: UInt64 = 0
        /// Video frames that were left out because targets were too slow.
        package var dropped: UInt64 = 0
    }

    /// What connections report to the desk, by stream, target and attempt.
    private enum Event: InboxElement {
        case live(StreamID, Int, UInt64)
        case ended(StreamID, Int, UInt64, RestreamFailure?)

        enum Topic: Hashable, Sendable {}

        /// None: each connection reports at most twice, and neither report replaces the other.
        var topic: Topic? { nil }
        /// A lost event would leave a target in a wrong state for ever.
        var isNeeded: Bool { true }
    }

    /// A connection to a target.
    private struct Connection {
        /// Identifies the connection; never used twice.
        ///
        /// Events of earlier connections are ignored by it.
        let attempt: UInt64
        let stream: OutgoingStream<RestreamConversation>
        let meter: RestreamMeter
        /// When the target accepted the stream; nil before.
        var liveSince: MonotonicTime?
    }

    /// A target and its connection.
    private struct Entry {
        let target: RestreamTarget
        var status: RestreamStatus
        var schedule = RestreamSchedule()
        var connection: Connection?
        /// When to connect again; nil unless the last connection failed.
        var retryAt: MonotonicTime?
        /// Whether the present failure was reported to the log and to webhooks.
        ///
        /// Retries that fail are not reported again.
        var isFailureTold = false
    }

    /// A stream that has targets.
    private struct Stream {
        var isLive = false
        /// When the stream was created: one that begins again under its name has other targets.
        var createdAt: WallTime?
        /// What viewers get; nil for nothing.
        var programme: RecordingDesk.Programme?
        /// The targets by number.
        var entries: [Int: Entry] = [:]
    }

    /// Receives each new status, with the type of the webhook if it is an event for webhooks.
    typealias Listener = @Sendable (StreamID, RestreamStatus, _ event: String?) async -> Void

    /// The delay before the next try of a target for which there was no place.
    private static let placeWait = Duration.seconds(10)

    private let settings: RestreamSettings
    private let packagings: PackagingDesk
    private let now: @Sendable () -> Moment
    private let log: Log
    private var streams: [StreamID: Stream] = [:]
    /// The meters of connections that have not ended; their counts are not in `counted` yet.
    private var open: [UInt64: RestreamMeter] = [:]
    /// The number of the latest attempt.
    private var lastAttempt: UInt64 = 0
    /// Totals, with the bytes and frames of connections that have ended.
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

    /// Begins to process the events of connections.
    func start(_ tell: @escaping Listener) {
        guard listener == nil else { return }
        self.tell = tell
        listener = Task { [inbox, weak self] in
            for await _ in inbox.news {
                for event in inbox.takeAll() { await self?.take(event) }
            }
        }
    }

    /// Closes all connections properly, and starts no more.
    func stop() async {
        isStopped = true
        for (stream, known) in streams {
            for number in known.entries.keys { await disconnect(number, of: stream) }
        }
        streams = [:]
        listener?.cancel()
        inbox.close()
    }

    /// Counts of the events that wait for the desk.
    package nonisolated var inboxCounters: InboxCounters { inbox.counters }

    /// The counts as of now, with those of connections that have not ended.
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

    /// The status of a target; `waiting` for one that the desk does not know.
    func status(of target: RestreamTarget, in stream: StreamID) -> RestreamStatus {
        guard let entry = streams[stream]?.entries[target.number], entry.target == target else {
            return RestreamStatus(
                number: target.number, address: target.address, state: .waiting, since: now().wall)
        }
        var status = entry.status
        status.dropped = entry.connection?.meter.current.dropped ?? 0
        return status
    }

    /// Takes note of a stream's targets and programme; connects and disconnects accordingly.
    /// - Parameters:
    ///   - isLive: whether the stream is live; targets of others are disconnected.
    ///   - createdAt: when the stream was created; nil if that is not known.
    ///   - programme: what viewers get; nil for nothing.
    func update(
        _ stream: StreamID, to targets: [RestreamTarget], isLive: Bool, createdAt: WallTime? = nil,
        _ programme: RecordingDesk.Programme?
    ) async {
        guard !isStopped, !targets.isEmpty || streams[stream] != nil else { return }
        var known = streams[stream] ?? Stream()
        let isAnother = known.createdAt != createdAt
        known.createdAt = createdAt
        known.isLive = isLive
        known.programme = programme
        // `known` is a copy: it is written back before the first await, where the actor may run other calls.
        // Compared as a whole: where a stream begins again under its name, its targets are numbered from 1 again.
        let gone = known.entries.filter { isAnother || !targets.contains($0.value.target) }
        for number in gone.keys { known.entries[number] = nil }
        for target in targets where known.entries[target.number] == nil {
            let status = RestreamStatus(
                number: target.number, address: target.address, state: .waiting, since: now().wall)
            known.entries[target.number] = Entry(target: target, status: status)
        }
        streams[stream] = known
        for (number, entry) in gone { await close(entry.connection, number, of: stream) }
        if !isLive {
            // Looked up for each one, because the stream may be live again meanwhile.
            for number in targets.map(\.number) where streams[stream]?.isLive == false {
                await disconnect(number, of: stream)
            }
        }
        // Meanwhile the programme may have changed, and another target may have been added.
        let latest = if let known = streams[stream] { known.programme } else { programme }
        if streams[stream]?.entries.isEmpty == true { streams[stream] = nil }
        await packagings.update(stream, to: latest)
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
        // In an order that is the same in each run: the last place goes to the first that is due.
        for stream in streams.keys.sorted(by: { $0.description < $1.description }) {
            guard !ended(stream) else {
                await update(stream, to: [], isLive: false, nil)
                continue
            }
            for number in (streams[stream]?.entries ?? [:]).keys.sorted() {
                guard let retryAt = streams[stream]?.entries[number]?.retryAt, time >= retryAt
                else { continue }
                await connect(number, of: stream)
            }
        }
    }

    // MARK: Connections

    /// Starts a connection to a target, or schedules a retry where there is no place for it.
    ///
    /// Does nothing unless the stream is live and has a programme, which may have changed while the caller waited. A
    /// connected target keeps the last frame while the programme is interrupted, but a target is not connected for an
    /// interrupted programme.
    private func connect(_ number: Int, of stream: StreamID) async {
        guard !isStopped, let known = streams[stream], known.isLive, known.programme != nil,
            var entry = known.entries[number], entry.connection == nil
        else { return }
        guard open.count < settings.limit else {
            return await fail(number, of: stream, .full, after: .zero, retryIn: Self.placeWait)
        }
        lastAttempt += 1
        let (attempt, target, meter) = (lastAttempt, entry.target, RestreamMeter())
        let settings = settings
        let destination = OutgoingTarget(
            host: target.address.host, port: target.address.port, isSecure: target.address.isSecure,
            permits: { address in
                settings.permits(address, own: LocalAddresses.advertised(for: IPAddress(high: 0, low: 0)))
            })
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
            // No thread or descriptor could be made for the connection.
            return await fail(number, of: stream, .unreachable("\(error)"), after: .zero)
        }
        entry.retryAt = nil
        streams[stream]?.entries[number] = entry
        open[attempt] = meter
        counted.attempts &+= 1
        await change(number, of: stream, to: .connecting)
    }

    /// Closes a target's connection; the target then waits for the stream to be live.
    private func disconnect(_ number: Int, of stream: StreamID) async {
        guard let entry = streams[stream]?.entries[number] else { return }
        streams[stream]?.entries[number]?.connection = nil
        streams[stream]?.entries[number]?.retryAt = nil
        // A target that waits has not failed: its next failure is reported.
        streams[stream]?.entries[number]?.isFailureTold = false
        await close(entry.connection, number, of: stream)
        // Meanwhile the stream may be live again, with a connection or a failure of its own.
        guard let left = streams[stream]?.entries[number], left.connection == nil, left.retryAt == nil,
            left.status.state != .waiting
        else { return }
        await change(number, of: stream, to: .waiting)
    }

    /// Makes a connection say goodbye and close, and ends its samples; its thread reports the end later.
    private func close(_ connection: Connection?, _ number: Int, of stream: StreamID) async {
        guard let connection else { return }
        connection.stream.tell(.end)
        connection.stream.stop()
        await packagings.endListening(connection.attempt, to: stream)
        log.info("restream.ended", ["stream": stream, "number": number])
    }

    /// Processes an event of a connection.
    private func take(_ event: Event) async {
        switch event {
        case .live(let stream, let number, let attempt): await begin(number, of: stream, attempt)
        case .ended(let stream, let number, let attempt, let failure):
            await packagings.endListening(attempt, to: stream)
            if let values = open.removeValue(forKey: attempt)?.current {
                counted.bytes &+= values.bytes
                counted.dropped &+= values.dropped
            }
            // A connection that the desk closed itself is no longer in its entry, and is no failure.
            guard let connection = streams[stream]?.entries[number]?.connection,
                connection.attempt == attempt
            else { return }
            streams[stream]?.entries[number]?.connection = nil
            counted.failures &+= 1
            let lived = connection.liveSince.map { now().elapsed - $0 } ?? .zero
            await fail(number, of: stream, failure ?? .closed, after: lived)
        }
    }

    /// A target accepts the stream: send it what the encoder makes.
    private func begin(_ number: Int, of stream: StreamID, _ attempt: UInt64) async {
        guard let known = streams[stream], let connection = known.entries[number]?.connection,
            connection.attempt == attempt
        else { return }
        streams[stream]?.entries[number]?.connection?.liveSince = now().elapsed
        streams[stream]?.entries[number]?.isFailureTold = false
        let outgoing = connection.stream
        // Weak, so that the listener does not keep a connection that the desk has dropped.
        await packagings.listen(to: stream, known.programme, as: attempt) { [weak outgoing] report in
            guard let media = RestreamMedia(report) else { return }
            outgoing?.tell(.media(media))
        }
        // The connection may have ended during the await; its listener must not stay.
        guard streams[stream]?.entries[number]?.connection?.attempt == attempt else {
            return await packagings.endListening(attempt, to: stream)
        }
        log.info("restream.live", fields(stream, known.entries[number]?.target))
        await change(number, of: stream, to: .live, event: "restream.live")
    }

    /// Schedules the next try of a target, and reports the failure if it is the first since the target was live.
    /// - Parameters:
    ///   - lived: how long the target took the programme; a long time resets the schedule.
    ///   - fixed: the delay; nil for the schedule's, which grows with each failure.
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
        // Webhooks report a failure once, not every retry.
        await change(
            number, of: stream, to: .failed(failure, nextTry: next), event: isNew ? "restream.failed" : nil)
    }

    /// Replaces a target's state, and notifies the listener.
    private func change(
        _ number: Int, of stream: StreamID, to state: RestreamStatus.State, event: String? = nil
    ) async {
        guard var status = streams[stream]?.entries[number]?.status else { return }
        status.state = state
        status.since = now().wall
        streams[stream]?.entries[number]?.status = status
        await tell(stream, status, event)
    }

    /// The fields of a log line, without the key of the target.
    private func fields(
        _ stream: StreamID, _ target: RestreamTarget?
    ) -> KeyValuePairs<String, any CustomStringConvertible> {
        ["stream": stream, "number": target?.number ?? 0, "host": target?.address.host ?? ""]
    }
}
