import Base
import Wire

/// Checks a VP8 stream as a decoder would, and records what would freeze or damage the picture.
///
/// Packets may arrive late and repaired. A frame counts once all of its packets have arrived and all frames before it,
/// back to a key frame, are complete.
/// - Source: RFC 7741 §4.2, §4.5.
package struct DecoderModel {
    /// What a decoder should never receive.
    package enum Complaint: Equatable, Sendable {
        /// Picture IDs jump although no packet is missing.
        case pictureIDJump(from: UInt16, to: UInt16)
        /// A later frame has an earlier time stamp.
        case timestampBackwards
        /// Packets of one frame contradict each other.
        case mixedFrame
        /// The first frame that was sent is not a key frame.
        case startsWithoutKeyFrame
        /// A descriptor or header cannot be parsed.
        case unreadable
    }

    private struct Frame {
        var timestamp: UInt32
        var pictureID: UInt16?
        var isKeyFrame: Bool
        /// Sequence number after the last packet; nil until the marker has arrived.
        var end: Int64?
    }

    /// All frames shown, including key frames.
    package private(set) var framesDecoded = 0
    /// Of `framesDecoded`.
    package private(set) var keyFramesDecoded = 0
    /// In the order in which they were detected; empty for an audio stream.
    package private(set) var complaints: [Complaint] = []
    /// Time from the first frame shown to the last one, in ticks of 90 kHz; nil with fewer than two frames.
    package var shownTicks: UInt32? {
        guard let firstShown, let last, framesDecoded > 1 else { return nil }
        return last.timestamp &- firstShown
    }
    private var firstShown: UInt32?
    /// The first packet that was sent, if known: the first one that is received may follow a loss.
    package var firstSent: Int64?
    private var packets: [Int64: RTPHeader] = [:]
    private var payloads: [Int64: [UInt8]] = [:]
    /// The first packet of the next frame to be shown.
    private var next: Int64?
    private var newest = Int64.min
    /// The latest key frame whose first packet has arrived.
    private var keyFrame: (start: Int64, timestamp: UInt32)?
    /// The last frame shown.
    private var last: Frame?
    /// Frames cut off since the last frame shown.
    private var framesCut: UInt16 = 0
    /// Empty packets since then, each of which may stand for a picture that was left out.
    private var placesFilled: UInt16 = 0
    private var needsKeyFrame = true

    /// Packets that are further behind the newest one are given up.
    private static let window: Int64 = 2_000

    package init() {}

    /// Records a packet; duplicates have no effect.
    package mutating func receive(_ header: RTPHeader, payload: [UInt8], sequenceNumber: Int64) {
        // Until the first picture is shown, an earlier packet may still arrive by retransmission.
        if let next, sequenceNumber < next, last != nil { return }
        packets[sequenceNumber] = header
        payloads[sequenceNumber] = payload
        newest = max(newest, sequenceNumber)
        let startsKeyFrame = startsKeyFrame(header, payload)
        if last == nil { begin(with: sequenceNumber, isPossible: startsKeyFrame, payload) }
        if header.timestamp != keyFrame?.timestamp, startsKeyFrame {
            keyFrame = (sequenceNumber, header.timestamp)
        }
        while showNextFrame() {}
        skipIfStuck()
    }

    /// Looks for the first key frame; everything before it is kept for a while, because missing packets may still
    /// arrive.
    private mutating func begin(with sequenceNumber: Int64, isPossible: Bool, _ payload: [UInt8]) {
        if isPossible {
            next = min(next ?? sequenceNumber, sequenceNumber)
        } else if sequenceNumber == firstSent, !payload.isEmpty {
            complaints.append(.startsWithoutKeyFrame)
        }
        guard next == nil, packets.count > Self.window else { return }
        packets = packets.filter { $0.key > newest - Self.window / 2 }
        payloads = payloads.filter { $0.key > newest - Self.window / 2 }
    }

    /// Gives up a frame that is not complete if a later key frame is, or if the missing packets are too old.
    private mutating func skipIfStuck() {
        guard let first = next else { return }
        if let keyFrame, keyFrame.start > first, frameEnd(from: keyFrame.start) != nil {
            skip(to: keyFrame.start)
            while showNextFrame() {}
        } else if newest - first > Self.window {
            skip(to: newest)
        }
    }

    private func startsKeyFrame(_ header: RTPHeader, _ payload: [UInt8]) -> Bool {
        let info = try? VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
        return info?.startsKeyFrame ?? false
    }

    /// The last packet of the frame that begins with `first`; nil if any packet is missing.
    private func frameEnd(from first: Int64) -> Int64? {
        var end = first
        while let packet = packets[end] {
            if packet.marker { return end }
            end += 1
        }
        return nil
    }

    /// Whether nothing can be shown before a key frame.
    package var isWaitingForKeyFrame: Bool { needsKeyFrame }

    /// Gives up what is missing, and waits for the next key frame.
    private mutating func skip(to sequenceNumber: Int64) {
        packets = packets.filter { $0.key >= sequenceNumber }
        payloads = payloads.filter { $0.key >= sequenceNumber }
        next = sequenceNumber
        needsKeyFrame = true
    }

    /// - Returns: whether anything was consumed, so that the next frame may follow.
    private mutating func showNextFrame() -> Bool {
        guard let first = next, let header = packets[first], let payload = payloads[first] else {
            return false
        }
        if payload.isEmpty {
            // Padding occupies a sequence number and shows nothing.
            placesFilled &+= 1
            forget(first...first)
            return true
        }
        var end = first
        while let packet = packets[end] {
            guard packet.timestamp == header.timestamp else {
                // A change of the source may cut a frame off; the key frame that follows repairs that.
                if startsKeyFrame(packet, payloads[end] ?? []) {
                    framesCut += 1
                } else {
                    complaints.append(.mixedFrame)
                }
                forget(first...(end - 1))
                return true
            }
            if packet.marker { break }
            end += 1
        }
        guard packets[end] != nil else { return false }
        show(first...end, header, payload)
        forget(first...end)
        return true
    }

    /// Checks a complete frame against the one before it.
    private mutating func show(_ range: ClosedRange<Int64>, _ header: RTPHeader, _ payload: [UInt8]) {
        guard let descriptor = try? VP8Descriptor(parsing: payload.span),
            let info = try? VideoPayload.describe(.vp8, payload: payload.span, marker: header.marker)
        else {
            complaints.append(.unreadable)
            return
        }
        // Before the first key frame, and after a gap, frames are useless: a decoder requests a key frame.
        if needsKeyFrame, !info.isKeyFrame || !info.startsFrame { return }
        if let last {
            if Int32(bitPattern: header.timestamp &- last.timestamp) <= 0 {
                complaints.append(.timestampBackwards)
            }
            if !needsKeyFrame, let before = last.pictureID, let now = descriptor.pictureID,
                (now &- before &- 1 &- framesCut) & 0x7FFF > placesFilled
            {
                complaints.append(.pictureIDJump(from: before, to: now))
            }
        }
        needsKeyFrame = false
        framesCut = 0
        placesFilled = 0
        framesDecoded += 1
        firstShown = firstShown ?? header.timestamp
        if info.isKeyFrame { keyFramesDecoded += 1 }
        last = Frame(
            timestamp: header.timestamp, pictureID: descriptor.pictureID, isKeyFrame: info.isKeyFrame,
            end: range.upperBound + 1)
    }

    /// Drops the packets of a frame that was shown or given up.
    private mutating func forget(_ range: ClosedRange<Int64>) {
        for sequenceNumber in range {
            packets[sequenceNumber] = nil
            payloads[sequenceNumber] = nil
        }
        next = range.upperBound + 1
    }
}
