import Base
import Wire

/// Datagrams that wait to leave over one TCP connection, each behind its length.
///
/// A reader that is slower than its stream makes the queue grow. Frames are dropped whole, never cut, and video goes
/// first: from the moment when it is too much or too old until the queue is nearly empty, whole pictures are left out.
/// The gap ends at the beginning of a picture; the player asks for a key frame as after any other loss. Audio and
/// control keep a share of the room that video never gets.
///
/// Packets are encrypted, but the header of RTP is not. An SSRC that ever sent a large packet counts as video.
/// - Source: RFC 4571 §2 (framing), RFC 3711 §3.1 (what SRTP leaves in the clear).
struct FrameQueue {
    struct Limits {
        /// A key frame of high quality fits beside what is under way.
        var videoBytes = 1 << 20
        /// Room for everything.
        var bytes = (1 << 20) + (256 << 10)
        /// Video comes back when no more than this waits.
        var resumeBytes = 64 << 10
        /// Media that could not leave for so long is of no use any more.
        var oldest = Duration.seconds(1)
    }

    /// What became of dropped frames.
    struct Drops: Equatable {
        var video: UInt64 = 0
        var other: UInt64 = 0
    }

    private struct Frame {
        let length: Int
        let media: Media?
        let isVideo: Bool
        let queued: MonotonicTime
    }

    /// Which picture an RTP packet belongs to.
    private struct Media: Equatable {
        let ssrc: UInt32
        let timestamp: UInt32
    }

    private struct VideoSource {
        let ssrc: UInt32
        /// Of the picture whose packets are dropped.
        var dropped: UInt32?
    }

    /// Larger packets are video; an Opus packet of 20 ms at 128 kbit/s has 320 bytes.
    static let smallDatagram = 400
    private static let sourceLimit = 64
    /// Room that an empty queue keeps.
    private static let keptBytes = 16 << 10

    let limits: Limits
    private var bytes: [UInt8] = []
    /// Bytes in front that have left.
    private var sent = 0
    private var frames: [Frame] = []
    /// The first frame that has not left whole, and how much of it has.
    private var first = 0
    private var begun = 0
    private var sources: [VideoSource] = []
    private(set) var isShedding = false
    private(set) var drops = Drops()
    private(set) var framesSent: UInt64 = 0
    /// Lengths of frames included.
    private(set) var bytesSent: UInt64 = 0

    init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Bytes that wait, lengths of frames included.
    var waiting: Int { bytes.count - sent }
    var isEmpty: Bool { waiting == 0 }

    // MARK: Filling

    /// Appends a datagram, or drops it.
    /// - Parameter isTight: all connections together hold so much that each may have only a little.
    mutating func append(_ datagram: Span<UInt8>, isTight: Bool = false, at now: MonotonicTime) {
        guard let (high, low) = FrameReader.header(length: datagram.count) else { return }
        let media = Self.media(datagram)
        let source = media.flatMap { videoSource($0.ssrc, size: datagram.count) }
        let size = FrameReader.headerLength + datagram.count
        if let source, let media {
            guard admitVideo(source, media, size: size, isTight: isTight, at: now) else {
                drops.video &+= 1
                return
            }
        } else if waiting + size > (isTight ? limits.resumeBytes * 2 : limits.bytes) {
            drops.other &+= 1
            return
        }
        bytes.append(high)
        bytes.append(low)
        unsafe datagram.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        frames.append(Frame(length: size, media: media, isVideo: source != nil, queued: now))
    }

    private mutating func admitVideo(
        _ source: Int, _ media: Media, size: Int, isTight: Bool, at now: MonotonicTime
    ) -> Bool {
        guard sources[source].dropped != media.timestamp else { return false }
        if isShedding {
            guard waiting <= limits.resumeBytes else {
                sources[source].dropped = media.timestamp
                return false
            }
            isShedding = false
        }
        let limit = isTight ? limits.resumeBytes : limits.videoBytes
        guard waiting + size > limit || isStale(at: now) else {
            sources[source].dropped = nil
            return true
        }
        isShedding = true
        // The part of this picture that waits already is of no use without the rest.
        sources[source].dropped = media.timestamp
        drops.video &+= remove { $0.media == media }
        return false
    }

    private func isStale(at now: MonotonicTime) -> Bool {
        guard first < frames.count else { return false }
        return now - frames[first].queued > limits.oldest
    }

    private static func media(_ datagram: Span<UInt8>) -> Media? {
        guard DatagramKind(datagram) == .rtp, let timestamp = try? datagram.uint32(at: 4),
            let ssrc = try? datagram.uint32(at: 8)
        else { return nil }
        return Media(ssrc: ssrc, timestamp: timestamp)
    }

    private mutating func videoSource(_ ssrc: UInt32, size: Int) -> Int? {
        if let index = sources.firstIndex(where: { $0.ssrc == ssrc }) { return index }
        guard size > Self.smallDatagram, sources.count < Self.sourceLimit else { return nil }
        sources.append(VideoSource(ssrc: ssrc))
        return sources.count - 1
    }

    // MARK: Emptying

    /// Drops media that waited too long for the reader; called when it reads again.
    mutating func expire(at now: MonotonicTime) {
        guard isStale(at: now) else { return }
        let oldest = limits.oldest
        var video: UInt64 = 0
        var pictures: [Media] = []
        let removed = remove { frame in
            guard let media = frame.media, now - frame.queued > oldest else { return false }
            if frame.isVideo {
                video &+= 1
                if pictures.last != media { pictures.append(media) }
            }
            return true
        }
        drops.video &+= video
        drops.other &+= removed &- video
        // Younger packets of the same pictures are of no use either.
        guard let last = pictures.last else { return }
        isShedding = true
        if let index = sources.firstIndex(where: { $0.ssrc == last.ssrc }) {
            sources[index].dropped = last.timestamp
        }
        drops.video &+= remove { frame in frame.media.map(pictures.contains) ?? false }
    }

    /// Lets `send` take bytes from the front; it returns how many it took, or a negative error.
    mutating func send(_ send: (UnsafeRawBufferPointer) -> Int) -> Int {
        let result = unsafe bytes.withUnsafeBytes {
            unsafe send(UnsafeRawBufferPointer(rebasing: $0[sent...]))
        }
        guard result > 0 else { return result }
        let taken = min(result, waiting)
        sent += taken
        begun += taken
        bytesSent &+= UInt64(taken)
        while first < frames.count, begun >= frames[first].length {
            begun -= frames[first].length
            first += 1
            framesSent &+= 1
        }
        tidy()
        return taken
    }

    private mutating func tidy() {
        if isEmpty {
            bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptBytes)
            frames.removeAll(keepingCapacity: frames.capacity <= Self.keptBytes / MemoryLayout<Frame>.stride)
        } else if sent >= 64 << 10, sent >= waiting {
            bytes.removeFirst(sent)
            frames.removeFirst(first)
        } else {
            return
        }
        sent = 0
        first = 0
    }

    /// Takes waiting frames out, but never the one that has begun to leave.
    /// - Returns: how many.
    private mutating func remove(where isUnwanted: (Frame) -> Bool) -> UInt64 {
        var keptBytes: [UInt8] = []
        var keptFrames: [Frame] = []
        var offset = sent - begun
        var removed: UInt64 = 0
        for (index, frame) in frames[first...].enumerated() {
            let hasBegun = index == 0 && begun > 0
            if !hasBegun, isUnwanted(frame) {
                removed &+= 1
            } else {
                let start = hasBegun ? offset + begun : offset
                keptBytes.append(contentsOf: bytes[start..<(offset + frame.length)])
                keptFrames.append(frame)
            }
            offset += frame.length
        }
        guard removed > 0 else { return 0 }
        bytes = keptBytes
        frames = keptFrames
        sent = 0
        first = 0
        return removed
    }
}
