import Base
import ClientPeer
import Crypto
import Net
import Peer
import Wire

/// A plain viewer: counts packets by their headers, and decrypts one in `decryptEvery`.
///
/// Until its first key frame is complete it decrypts every packet, as a browser does.
final class Viewer: Client {
    /// RTP streams in one session, which bounds memory; packets of further ones count as unreadable.
    private static let maximumStreams = 16
    /// Between two requests for the first key frame, in nanoseconds; browsers wait as long.
    static let keyFramePatience: Int64 = 200_000_000
    /// A larger difference, in nanoseconds, means that the stamp came from an unrelated clock.
    private static let longestLatency: Int64 = 60_000_000_000

    let settings: ViewerSettings
    var streams: [ViewerStream] = []
    /// Nil once the first key frame is complete, or if the plan has no video.
    var firstFrame: FirstFrame?
    /// When to send the next PLI for the first key frame; nil if none is awaited.
    var nextKeyFrameRequest: MonotonicTime?
    /// When the first media packet arrived; older stamps do not count as latency.
    private var firstPacket: MonotonicTime?
    /// What each payload type that the server may send means.
    private let incoming: [UInt8: ClientPlan.Incoming]
    /// Records arrivals for transport-wide feedback; nil if none is sent, or if the server does not number packets.
    private var arrivals: (id: UInt8, recorder: TransportFeedbackRecorder)?
    /// Media packets until the next one that is decrypted.
    private var countdown: Int

    init(
        _ setup: ClientSetup, _ settings: ViewerSettings, _ surroundings: ClientSurroundings, seed: UInt64,
        at now: MonotonicTime
    ) {
        var random = SplitMix64(seed: seed)
        self.settings = settings
        incoming = setup.plan.incoming
        firstFrame = setup.plan.hasVideo ? FirstFrame() : nil
        // At a random point of the cycle, so that viewers do not all decrypt the same packet.
        countdown = Int.random(in: 1...settings.decryptEvery, using: &random)
        super.init(setup, as: "viewer", random: random, surroundings, at: now)
        let ids = setup.plan.lines.lazy.compactMap(\.extensions.transportSequenceNumber)
        if settings.tellsOfPackets, let id = ids.first {
            arrivals = (id, TransportFeedbackRecorder(senderSSRC: ssrc, mediaSSRC: 0))
        }
    }

    override func connected(at now: MonotonicTime) {
        guard firstFrame != nil else { return }
        nextKeyFrameRequest = now.advanced(byNanoseconds: Self.keyFramePatience)
    }

    override var hurriesAfterMedia: Bool { settings.asksForRepair }

    // MARK: Datagrams

    /// The hot path: about 200 ns of our own code for a packet that is not decrypted.
    override func receiveMedia(_ datagram: inout MutableSpan<UInt8>, at now: MonotonicTime) {
        box.tally.bytes &+= UInt64(datagram.count)
        // Without SRTP keys a packet cannot be read.
        guard connection.isConnected else { return }
        guard let packet = PublicHeader(datagram.span),
            let index = stream(of: packet.ssrc, packet.payloadType)
        else {
            box.tally.unreadable &+= 1
            return
        }
        if let id = arrivals?.id, let number = PublicHeader.transportNumber(in: datagram.span, id: id) {
            arrivals?.recorder.mediaSSRC = packet.ssrc
            arrivals?.recorder.record(number, at: now)
        }
        if lastPacket == nil { firstPacket = now }
        noteMedia(at: now)
        guard streams[index].repairs == nil else { return receiveRepair(&datagram, index, at: now) }
        let before = streams[index].reception.highest
        let expected = streams[index].reception.expected
        let arrival = streams[index].reception.receive(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, size: datagram.count, at: now)
        count(arrival, index, newestBefore: before, expectedBefore: expected)
        countdown -= 1
        // A duplicate adds nothing. Until the first key frame is complete, all others are needed.
        guard case .new(let number) = arrival, countdown <= 0 || firstFrame != nil else { return }
        countdown = settings.decryptEvery
        inspect(&datagram, index, number, timestamp: packet.timestamp, marker: packet.marker, at: now)
    }

    /// Counts an arrival, and the packets that the stream now expects in addition.
    private func count(
        _ arrival: ReceiveStream.Arrival, _ index: Int, newestBefore: Int64?, expectedBefore: Int64
    ) {
        let expected = streams[index].reception.expected &- expectedBefore
        box.tally.count(
            arrival, expected: expected, newestBefore: newestBefore, isVideo: streams[index].isVideo)
    }

    /// Index of the stream with this SSRC; a new stream is added if its payload type is known.
    private func stream(of ssrc: UInt32, _ payloadType: UInt8) -> Int? {
        for index in streams.indices where streams[index].ssrc == ssrc { return index }
        guard streams.count < Self.maximumStreams, let entry = incoming[payloadType] else { return nil }
        let repair: ReceiveStream.Repair =
            settings.asksForRepair && entry.repairs == nil ? .packetsAndKeyFrames : .none
        streams.append(
            ViewerStream(
                ssrc: ssrc, codec: entry.codec, repairs: entry.repairs,
                reception: ReceiveStream(
                    ssrc: ssrc, clockRate: entry.codec.clockRate, repair: repair)))
        return streams.count - 1
    }

    /// Decrypts a media packet, then reads its stamp and checks whether it completes the first key frame.
    private func inspect(
        _ datagram: inout MutableSpan<UInt8>, _ index: Int, _ number: Int64, timestamp: UInt32, marker: Bool,
        at now: MonotonicTime
    ) {
        guard let (header, _) = unprotect(&datagram) else { return }
        box.tally.decrypted &+= 1
        let payload = datagram.span.extracting(header.payloadRange)
        guard !payload.isEmpty else { return }
        takeStamp(of: payload, index)
        guard firstFrame != nil, let codec = streams[index].codec.video else { return }
        let info = try? VideoPayload.describe(codec, payload: payload, marker: marker)
        let isComplete = firstFrame?.receive(
            index: number, timestamp: timestamp, marker: marker, startsKeyFrame: info?.startsKeyFrame ?? false
        )
        if isComplete == true {
            firstFrame = nil
            nextKeyFrameRequest = nil
            note(.firstFrame, at: now)
        }
    }

    /// Measures latency and jitter from the stamp of a synthetic packet.
    ///
    /// Publisher and viewer must be on one machine: the stamp is of its monotonic clock.
    private func takeStamp(of payload: Span<UInt8>, _ index: Int) {
        let stamp: MediaStamp?
        switch streams[index].codec {
        case .vp8:
            let offset = try? MediaStamp.offset(inVideo: payload)
            stamp = offset.flatMap { try? payload.uint64(at: $0) }.flatMap { MediaStamp(bits: $0) }
        case .opus: stamp = (try? SyntheticAudio.stamp(in: payload)) ?? nil
        case .vp9, .h264, .av1: stamp = nil
        }
        guard let stamp else { return }
        // A server may start with cached pictures; their age is not the latency of the path.
        guard let firstPacket, stamp.time >= firstPacket else { return }
        let latency = arrival.nanoseconds(since: stamp.time)
        guard latency >= 0, latency < Self.longestLatency else { return }
        box.tally.latency.add(latency)
        if let last = streams[index].lastLatency { box.tally.jitter.add(abs(latency - last)) }
        streams[index].lastLatency = latency
    }

    /// Unwraps a retransmission, and counts it for the stream that it repairs.
    /// - Source: RFC 4588 §4.
    private func receiveRepair(_ datagram: inout MutableSpan<UInt8>, _ index: Int, at now: MonotonicTime) {
        guard let (header, length) = unprotect(&datagram) else { return }
        let codec = streams[index].codec
        guard let target = streams.firstIndex(where: { $0.repairs == nil && $0.codec == codec }),
            let original = try? Retransmission.original(
                of: header, in: datagram.span, payloadType: header.payloadType, ssrc: streams[target].ssrc)
        else { return }
        let before = streams[target].reception.highest
        let expected = streams[target].reception.expected
        let arrival = streams[target].reception.receive(
            sequenceNumber: original.sequenceNumber, timestamp: original.timestamp, size: length,
            origin: .retransmission, at: now)
        count(arrival, target, newestBefore: before, expectedBefore: expected)
        guard case .repaired(let number) = arrival, firstFrame != nil, let video = codec.video else { return }
        let payload = datagram.span.extracting(original.payloadRange)
        let info = try? VideoPayload.describe(video, payload: payload, marker: original.marker)
        let isComplete = firstFrame?.receive(
            index: number, timestamp: original.timestamp, marker: original.marker,
            startsKeyFrame: info?.startsKeyFrame ?? false)
        guard isComplete == true else { return }
        firstFrame = nil
        nextKeyFrameRequest = nil
        note(.firstFrame, at: now)
    }

    // MARK: Reports, and requests for packets and key frames

    override func receive(_ packet: RTCPPacket, at now: MonotonicTime) {
        guard case .senderReport(let report) = packet else { return }
        for index in streams.indices where streams[index].ssrc == report.ssrc {
            _ = streams[index].reception.receive(report, at: now)
        }
    }

    override var nextWork: MonotonicTime {
        var earliest = min(
            nextKeyFrameRequest ?? .distantFuture, arrivals?.recorder.deadline ?? .distantFuture)
        guard settings.asksForRepair else { return earliest }
        for index in streams.indices {
            earliest = min(earliest, streams[index].reception.deadline ?? .distantFuture)
        }
        return earliest
    }

    override func work(at now: MonotonicTime) {
        if let due = nextKeyFrameRequest, now >= due {
            if let video = streams.first(where: { $0.isVideo && $0.repairs == nil }) {
                requestKeyFrame(of: video.ssrc)
            }
            nextKeyFrameRequest = now.advanced(byNanoseconds: Self.keyFramePatience)
        }
        // Empty unless feedback is due.
        let told = arrivals?.recorder.feedbackDue(at: now) ?? []
        if !told.isEmpty { send(packer.feedback(told.map { .transportFeedback($0) })) }
        if settings.asksForRepair { askForRepair(at: now) }
    }

    override func report(at now: MonotonicTime) -> (sent: [SenderReport], received: [ReportBlock]) {
        var blocks: [ReportBlock] = []
        for index in streams.indices where streams[index].repairs == nil {
            if let block = streams[index].reception.reportBlock(at: now) { blocks.append(block) }
        }
        return ([], blocks)
    }

    /// Sends one compound with the NACKs and PLIs of all streams.
    private func askForRepair(at now: MonotonicTime) {
        var packets: [RTCPPacket] = []
        for index in streams.indices where streams[index].repairs == nil {
            var lost: [UInt16] = []
            streams[index].reception.nacksDue(at: now, rtt: connection.roundTripTime, into: &lost)
            let media = streams[index].ssrc
            if !lost.isEmpty {
                box.tally.repairsAskedFor &+= UInt64(lost.count)
                packets.append(.nack(.init(senderSSRC: ssrc, mediaSSRC: media, lost: lost)))
            }
            if streams[index].reception.takeKeyFrameDemand() {
                box.tally.keyFrameRequestsSent &+= 1
                packets.append(.pictureLossIndication(.init(senderSSRC: ssrc, mediaSSRC: media)))
            }
        }
        guard !packets.isEmpty else { return }
        send(packer.feedback(packets))
    }
}

/// The header fields that can be read while the packet is still encrypted.
///
/// `RTPHeader` cannot be used here: it checks the padding, which lies inside the ciphertext.
/// - Source: RFC 3550 §5.1.
struct PublicHeader {
    let marker: Bool
    let payloadType: UInt8
    let sequenceNumber: UInt16
    let timestamp: UInt32
    let ssrc: UInt32

    init?(_ packet: Span<UInt8>) {
        guard packet.count > RTPHeader.fixedLength, let second = try? packet.uint8(at: 1),
            let sequenceNumber = try? packet.uint16(at: 2), let timestamp = try? packet.uint32(at: 4),
            let ssrc = try? packet.uint32(at: 8)
        else { return nil }
        marker = second & 0x80 != 0
        payloadType = second & 0x7F
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
    }

    /// The transport-wide sequence number of a packet, whose header extensions are not encrypted.
    /// - Parameter id: of the extension, as it was negotiated.
    /// - Returns: nil if the packet does not contain it.
    /// - Source: RFC 8285 §4.2 (one-byte header), §4.3 (two-byte header).
    static func transportNumber(in packet: Span<UInt8>, id: UInt8) -> UInt16? {
        guard let first = try? packet.uint8(at: 0), first & 0x10 != 0 else { return nil }
        // The extension follows the CSRC list.
        var offset = RTPHeader.fixedLength + Int(first & 0x0F) * 4
        guard let profile = try? packet.uint16(at: offset), let words = try? packet.uint16(at: offset + 2)
        else { return nil }
        // Any other profile is read as the two-byte form.
        let isOneByte = profile == 0xBEDE
        offset += 4
        let end = min(offset + Int(words) * 4, packet.count)
        while offset < end, let head = try? packet.uint8(at: offset) {
            // A zero byte is padding between elements.
            guard head != 0 else {
                offset += 1
                continue
            }
            let found = isOneByte ? head >> 4 : head
            // In one-byte headers 15 ends the list, and so does 0 with a length.
            guard !isOneByte || (1...14).contains(found) else { return nil }
            let length = isOneByte ? Int(head & 0x0F) + 1 : Int((try? packet.uint8(at: offset + 1)) ?? 0)
            let value = offset + (isOneByte ? 1 : 2)
            if found == id { return length == 2 && value + 2 <= end ? try? packet.uint16(at: value) : nil }
            offset = value + length
        }
        return nil
    }
}

extension Tally {
    /// Counts one packet of media.
    /// - Parameters:
    ///   - expected: how many more packets the stream expects since this one.
    ///   - newestBefore: the highest number before it; nil for the first packet.
    mutating func count(
        _ arrival: ReceiveStream.Arrival, expected: Int64, newestBefore: Int64?, isVideo: Bool
    ) {
        self.expected &+= UInt64(max(expected, 0))
        switch arrival {
        case .new(let index):
            packets &+= 1
            if isVideo { videoPackets &+= 1 }
            if let newestBefore, index < newestBefore { reordered &+= 1 }
        case .repaired:
            packets &+= 1
            if isVideo { videoPackets &+= 1 }
            repaired &+= 1
        case .duplicate: duplicates &+= 1
        case .tooOld: break
        }
    }
}
