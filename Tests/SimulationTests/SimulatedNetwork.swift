import Base
import Peer

/// A bad network in virtual time: the same seed gives the same losses, delays and duplicates.
struct SimulatedNetwork {
    /// What happens to datagrams on their way.
    struct Conditions {
        /// Probability, 0 to 1, that a datagram never arrives.
        var loss = 0.0
        /// Probability that it arrives twice.
        var duplication = 0.0
        /// One way.
        var delay = Duration.milliseconds(10)
        /// Added to the delay of each datagram, evenly distributed; more than the spacing of packets reorders them.
        var jitter = Duration.zero

        static let perfect = Conditions()
    }

    struct Datagram {
        let source: TransportAddress
        let destination: TransportAddress
        var bytes: [UInt8]
    }

    /// A datagram that came to a link before its receiver.
    struct Passage {
        let time: MonotonicTime
        /// In queue and link; nil where it was dropped.
        let wait: Duration?
        let bytes: Int
    }

    private struct InFlight {
        let arrival: MonotonicTime
        /// Keeps datagrams of the same instant in the order they were sent.
        let number: UInt64
        let datagram: Datagram
        /// Of the links that several receivers have in common, those from here on are still before it.
        var nextLink = Int.max
    }

    var conditions: Conditions
    private var random: any RandomNumberGenerator
    private var inFlight: [InFlight] = []
    private var count: UInt64 = 0
    private(set) var lost = 0
    private let digest: RunDigest
    /// Probability that what a sender sends gets lost besides, by its address.
    var uplinkLoss: [TransportAddress: Double] = [:]
    /// Before a receiver, by its address.
    var links: [TransportAddress: CappedLink] = [:]
    /// Each before several receivers; who is behind more than one is sent what passes them in this order, and before
    /// whom there is one, has nothing alone.
    var commonLinks: [CommonLink] = []
    /// Probability that what a receiver is sent gets lost besides, by its address.
    var downlinkLoss: [TransportAddress: Double] = [:]
    /// Behind a sender, by its address.
    var uplinks: [TransportAddress: CappedLink] = [:]
    /// Instead of the conditions' delay, for what is sent by an address or to it.
    var delays: [TransportAddress: Duration] = [:]
    /// Bytes of datagrams sent to each receiver, whether they arrive or not.
    private(set) var offered: [TransportAddress: Int] = [:]
    /// Those that arrive.
    private(set) var delivered: [TransportAddress: Int] = [:]
    /// What happens to each datagram at the links before these receivers only, in order, because it is much.
    var passages: [TransportAddress: [Passage]] = [:]

    init(conditions: Conditions, random: any RandomNumberGenerator, digest: RunDigest) {
        self.digest = digest
        self.conditions = conditions
        self.random = random
    }

    /// When the next datagram arrives.
    var next: MonotonicTime? { inFlight.last?.arrival }

    mutating func send(_ datagram: Datagram, at now: MonotonicTime) {
        digest.note(datagram, at: now)
        offered[datagram.destination, default: 0] += datagram.bytes.count
        let (source, receiver) = (datagram.source, datagram.destination)
        if chance(conditions.loss) || chance(uplinkLoss[source] ?? 0) || chance(downlinkLoss[receiver] ?? 0) {
            lost += 1
            return
        }
        let isBehindUplink = uplinks[source] != nil
        let link = isBehindUplink ? nil : commonLink(from: 0, to: receiver)
        forward(datagram, through: link, at: now)
    }

    /// The next link that several receivers have in common, and a datagram has to pass; nil for none.
    private func commonLink(from first: Int, to receiver: TransportAddress) -> Int? {
        commonLinks.indices.first { $0 >= first && commonLinks[$0].receivers.contains(receiver) }
    }

    /// Has a datagram enter its next link, or arrive behind the last.
    private mutating func forward(_ datagram: Datagram, through link: Int?, at now: MonotonicTime) {
        let waited = pass(datagram, through: link, at: now)
        passages[datagram.destination]?.append(
            Passage(time: now, wait: waited, bytes: datagram.bytes.count))
        guard let queued = waited else {
            lost += 1
            return
        }
        if let link, let next = commonLink(from: link + 1, to: datagram.destination) {
            count += 1
            return insert(
                InFlight(arrival: now + queued, number: count, datagram: datagram, nextLink: next))
        }
        delivered[datagram.destination, default: 0] += datagram.bytes.count
        let delay = delays[datagram.source] ?? delays[datagram.destination] ?? conditions.delay
        let copies = chance(conditions.duplication) ? 2 : 1
        for _ in 0..<copies {
            let jitter = conditions.jitter.wholeNanoseconds
            let extra = jitter > 0 ? Int64(random.next() % UInt64(jitter)) : 0
            count += 1
            insert(
                InFlight(
                    arrival: (now + delay + queued).advanced(byNanoseconds: extra), number: count,
                    datagram: datagram))
        }
    }

    /// - Parameter link: that several receivers have in common, by its place; nil for what is their own.
    /// - Returns: how long a datagram takes through the link behind its sender or before its receiver; nil if it is
    ///   dropped there.
    private mutating func pass(
        _ datagram: Datagram, through link: Int?, at now: MonotonicTime
    ) -> Duration? {
        let (receiver, size) = (datagram.destination, datagram.bytes.count)
        if uplinks[datagram.source] != nil { return uplinks[datagram.source]?.pass(size, at: now) }
        if let link {
            return chance(commonLinks[link].loss) ? nil : commonLinks[link].link.pass(size, at: now)
        }
        return links[receiver] == nil ? .zero : links[receiver]?.pass(size, at: now)
    }

    /// The next datagram that has arrived by `now`.
    mutating func receive(at now: MonotonicTime) -> Datagram? {
        while let last = inFlight.last, last.arrival <= now {
            inFlight.removeLast()
            guard last.nextLink < commonLinks.count else { return last.datagram }
            forward(last.datagram, through: last.nextLink, at: last.arrival)
        }
        return nil
    }

    /// Keeps the latest first, so that taking the earliest is taking the last.
    private mutating func insert(_ new: InFlight) {
        var low = 0
        var high = inFlight.count
        while low < high {
            let middle = (low + high) / 2
            let other = inFlight[middle]
            if (other.arrival, other.number) > (new.arrival, new.number) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        inFlight.insert(new, at: low)
    }

    private mutating func chance(_ probability: Double) -> Bool {
        probability > 0 && Double(random.next() >> 11) * 0x1p-53 < probability
    }
}

/// A link that takes so much and no more, with a queue before it that drops what does not fit.
struct CappedLink {
    /// Bits a second.
    let bitrate: Int
    /// The longest that a datagram may have to wait.
    let queue: Duration
    /// Instead of `bitrate`, and when it began; nil where that stays.
    private var curve: (CapacityCurve, began: MonotonicTime)?
    private var free = MonotonicTime.zero

    init(bitrate: Int, queue: Duration = .milliseconds(300)) {
        self.bitrate = bitrate
        self.queue = queue
    }

    init(_ curve: CapacityCurve, from began: MonotonicTime, queue: Duration) {
        self.init(bitrate: curve.capacity(at: 0), queue: queue)
        self.curve = (curve, began)
    }

    /// - Returns: how long a datagram takes through queue and link; nil if it is dropped.
    mutating func pass(_ size: Int, at now: MonotonicTime) -> Duration? {
        let start = max(free, now)
        guard start <= now + queue else { return nil }
        if let (curve, began) = curve {
            let end = curve.end(of: size, from: Double(start.nanoseconds(since: began)) / 1e9)
            free = max(began.advanced(byNanoseconds: Int64(end * 1e9)), start)
            return .nanoseconds(free.nanoseconds(since: now))
        }
        free = start.advanced(byNanoseconds: Int64(size) * 8_000_000_000 / Int64(max(bitrate, 1)))
        return .nanoseconds(free.nanoseconds(since: now))
    }
}

/// A link that several receivers, and others who are no clients of the server, have in common.
struct CommonLink {
    var link: CappedLink
    var receivers: Set<TransportAddress>
    /// Probability, 0 to 1, that what passes gets lost whatever the queue.
    var loss = 0.0
}

/// A sender of TCP who has the same link as others: slow start, a segment more a round trip, half for each round trip
/// with a loss.
/// - Source: RFC 5681 §3.1 and §3.2, without time-outs: what is lost is sent again with what comes next.
struct SimulatedTCPSender {
    private static let segment = 1_500

    private var window = 10.0
    private var threshold = Double.infinity
    /// Segments on their way, by when their sender hears of them.
    private var underWay: [(news: MonotonicTime, isLost: Bool)] = []
    /// Losses until then are of the same round trip.
    private var halvedUntil = MonotonicTime.zero
    /// Segments that are left to send.
    private(set) var rest: Int
    /// Bytes that arrived.
    private(set) var delivered = 0

    /// - Parameter bytes: to send.
    init(bytes: Int) {
        rest = (bytes + Self.segment - 1) / Self.segment
    }

    var isDone: Bool { rest == 0 && underWay.isEmpty }

    /// Takes in what is heard by `now`, and sends what may be sent then.
    /// - Parameter roundTrip: without the queue's part.
    mutating func advance(to now: MonotonicTime, through link: inout CappedLink, roundTrip: Duration) {
        for segment in underWay where segment.news <= now {
            if segment.isLost {
                rest += 1
                guard segment.news > halvedUntil else { continue }
                threshold = max(window / 2, 2)
                window = threshold
                halvedUntil = now + roundTrip
            } else {
                delivered += Self.segment
                window += window < threshold ? 1 : 1 / window
            }
        }
        underWay.removeAll { $0.news <= now }
        while rest > 0, Double(underWay.count) < window {
            rest -= 1
            let waits = link.pass(Self.segment, at: now)
            underWay.append((now + roundTrip + (waits ?? link.queue), waits == nil))
        }
    }
}

/// Collects what a machine sends, as `Net`'s batch would.
struct CollectingSink: DatagramSink {
    let source: TransportAddress
    private(set) var datagrams: [SimulatedNetwork.Datagram] = []

    init(source: TransportAddress) {
        self.source = source
    }

    mutating func append<Failure: Error>(
        to destination: TransportAddress, capacity: Int,
        _ write: (inout MutableSpan<UInt8>) throws(Failure) -> Int
    ) throws(Failure) {
        var bytes = [UInt8](repeating: 0, count: capacity)
        var span = bytes.mutableSpan
        let length = try write(&span)
        guard length > 0 else { return }
        datagrams.append(.init(source: source, destination: destination, bytes: Array(bytes[..<length])))
    }

    mutating func takeAll() -> [SimulatedNetwork.Datagram] {
        defer { datagrams.removeAll() }
        return datagrams
    }
}
