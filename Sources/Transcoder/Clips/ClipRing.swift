import Base
import Wire

/// What a stream sent last, as it came: nothing is decoded until somebody wants a clip.
///
/// It begins where a decoder can, so what is older than the longest clip goes a group of pictures at a time. Time is a
/// parameter.
struct ClipRing {
    /// What a clip is made of.
    struct Slice {
        /// In the order in which they came, from an entry point on where there is one.
        let packets: [(packet: InputPacket, input: InputID)]
        /// When the clip begins: what is before is only decoded.
        let begin: MonotonicTime
        let end: MonotonicTime
        /// Of the pictures, in pixels: that of the largest in it.
        let canvas: VideoResolution

        /// How long the clip is to be: whole parts of half a second.
        var milliseconds: Int {
            let parts =
                end.nanoseconds(since: begin) / 1_000_000 / Int64(PackagingTiming.usual.partMilliseconds)
            return Int(clamping: parts) * PackagingTiming.usual.partMilliseconds
        }
    }

    /// Of a clip, at most.
    static let longest = Duration.seconds(120)
    /// Of a clip, at least: less shows nothing.
    static let shortest = Duration.seconds(1)
    /// After so long without one a key frame is asked for: a clip is decoded from the one before its beginning on.
    static let keyFrameInterval = Duration.seconds(30)
    /// An entry point that no other followed for so long is of a picture that is off.
    private static let staleness = Duration.seconds(180)
    /// Of memory that a packet takes beside its payload.
    private static let overhead = 192
    /// Of pictures whose size nothing tells.
    private static let usualCanvas = VideoResolution(width: 1_280, height: 720)

    /// In bytes.
    private let limit: Int
    private var packets: [(packet: InputPacket, input: InputID)] = []
    /// Taken from the front of `packets`, over all time.
    private var dropped = 0
    /// Numbers of entry points of pictures, counted as `dropped` counts.
    private var starts: [Int] = []
    private(set) var byteCount = 0
    private var latest = MonotonicTime.zero
    private var video: InputID?
    /// When a picture that decoders can begin with came, or was asked for; nil before there is video.
    private var entryAt: MonotonicTime?

    /// - Parameter limit: of bytes; beyond it the oldest group of pictures goes.
    init(limit: Int = 64 << 20) {
        self.limit = limit
    }

    var isEmpty: Bool { packets.isEmpty }

    mutating func append(_ packet: InputPacket, of input: InputID) {
        latest = max(latest, packet.arrival)
        if packet.codec.video != nil {
            if video != input { (video, entryAt) = (input, nil) }
            if packet.isEntryPoint {
                starts.append(dropped + packets.count)
                entryAt = packet.arrival
            }
            entryAt = entryAt ?? packet.arrival
        }
        packets.append((packet, input))
        byteCount += packet.payload.count + Self.overhead
        while byteCount > limit { dropGroup() }
    }

    /// Nothing more comes of an input.
    mutating func close(_ input: InputID) {
        if video == input { video = nil }
    }

    /// Lets go of what no clip can need any more.
    mutating func advance(to now: MonotonicTime) {
        while starts.count > 1, arrival(of: starts[1]) <= now - Self.longest { drop(to: starts[1]) }
        if starts.count == 1, arrival(of: starts[0]) <= now - Self.staleness { starts = [] }
        guard starts.isEmpty else { return }
        let old = packets.prefix { $0.packet.arrival < now - Self.longest }.count
        // Not one by one: what follows moves up each time.
        if old > 256 { drop(to: dropped + old) }
    }

    /// The input whose publisher has to make a key frame; once in a while.
    mutating func takeKeyFrameWish(at now: MonotonicTime) -> InputID? {
        guard let video, let last = entryAt, now >= last + Self.keyFrameInterval else { return nil }
        entryAt = now
        return video
    }

    /// What a clip of the last `length` is made of; nil while there is too little.
    func slice(of length: Duration, at now: MonotonicTime) -> Slice? {
        let wanted = now - min(max(length, Self.shortest), Self.longest)
        let start = starts.last { arrival(of: $0) <= wanted }.map { $0 - dropped }
        guard let first = start ?? packets.firstIndex(where: { $0.packet.arrival >= wanted }) else {
            return nil
        }
        let begin = max(wanted, packets[first].packet.arrival)
        let part = Array(packets[first...])
        // Of a stream that sends nothing any more there is no last minute.
        guard begin + Self.shortest <= now, begin <= latest else { return nil }
        return Slice(packets: part, begin: begin, end: now, canvas: Self.canvas(of: part.map(\.packet)))
    }

    private func arrival(of number: Int) -> MonotonicTime { packets[number - dropped].packet.arrival }

    /// Lets go of the oldest group of pictures, or of all where that is the only one.
    private mutating func dropGroup() {
        drop(to: starts.first { $0 > dropped } ?? dropped + packets.count)
    }

    private mutating func drop(to number: Int) {
        let count = number - dropped
        byteCount -= packets[..<count].reduce(0) { $0 + $1.packet.payload.count + Self.overhead }
        packets.removeFirst(count)
        dropped = number
        starts.removeAll { $0 < number }
    }

    private static func canvas(of packets: [InputPacket]) -> VideoResolution {
        var largest: VideoResolution?
        for packet in packets where packet.isEntryPoint {
            guard let codec = packet.codec.video,
                let info = try? VideoPayload.describe(
                    codec, payload: packet.payload.span, marker: packet.marker),
                var size = info.resolution
            else { continue }
            // Turned by 90 or 270 degrees (3GPP TS 26.114 §7.4.5).
            if let orientation = packet.orientation, orientation & 1 == 1 {
                size = VideoResolution(width: size.height, height: size.width)
            }
            let known = largest.map { Int($0.width) * Int($0.height) } ?? 0
            if Int(size.width) * Int(size.height) >= known { largest = size }
        }
        return largest ?? usualCanvas
    }
}
