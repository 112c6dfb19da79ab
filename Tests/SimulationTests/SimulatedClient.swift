import Base
import ClientPeer
import Crypto
import Peer
import TestSupport
import Wire

/// A publisher or a viewer in virtual time: a `ClientConnection` with synthetic media or a decoder model behind it.
final class SimulatedClient {
    enum Role {
        case publisher
        case viewer
    }

    let role: Role
    let offer: ClientOffer
    /// What the client's socket is bound to; a NAT may show another address to the server.
    let localAddress: TransportAddress
    var outerAddress: TransportAddress
    private(set) var connection: ClientConnection?
    private(set) var events: [ClientConnection.Event] = []
    private var random: SeededGenerator
    private let dtls: DTLSContext

    // Publishing.
    private(set) var videoTracks: [SendingTrack] = []
    private(set) var audioTrack: SendingTrack?
    /// One for each simulcast layer, or one for all.
    private(set) var videos: [SyntheticVideo]
    private var nextVideo = MonotonicTime.distantFuture
    private var nextAudio = MonotonicTime.distantFuture
    private var audioTimestamp: UInt32 = 7
    /// Where a publisher puts earlier sound into later packets; nil elsewhere.
    var redundantSound: RedundantSound?
    /// Changes payloads with redundancy before a publisher sends them, by their number.
    var spoilsSound: ((Int, [UInt8]) -> [UInt8])?
    /// Time stamps of all sound that was sent.
    private(set) var spokenTimes: [UInt32] = []
    /// The sound that came, by its time stamp.
    private(set) var heardSound: [UInt32: [UInt8]] = [:]
    /// How much later a viewer's time stamps of sound are than those that it was sent with; nil before the first.
    private(set) var soundShift: UInt32?
    /// How loud what came was said to be, by its time stamp.
    private(set) var heardLevels: [UInt32: UInt8] = [:]
    private(set) var repairsOfSoundAsked = 0
    private var transport: UInt16 = 65_500
    private(set) var keyFrameRequests = 0
    private(set) var transportFeedback = 0
    var isSendingMedia = true
    /// Simulcast layers that are not sent.
    var switchedOff: Set<Int> = []

    // Watching.
    private(set) var received: [ReceivingTrack] = []
    var decoder = DecoderModel()
    private(set) var keyFrames = KeyFrameArrivals()
    /// The same for VP9 with spatial layers.
    private(set) var spatialDecoder = SpatialDecoder()
    private(set) var connectedAt: MonotonicTime?
    private(set) var firstFrameAt: MonotonicTime?
    private var lastFrameAt: MonotonicTime?
    private var feedback = TransportFeedbackRecorder(senderSSRC: 1, mediaSSRC: 0)
    /// Where the viewer tells of packets by their own sequence numbers; nil elsewhere.
    private var arrivals: CongestionControlFeedbackBuilder?
    private var nextArrivals = MonotonicTime.distantFuture
    /// What the viewer says that it can take in, where packets tell when they left.
    private var estimates = EstimatingReceiver()
    /// Whether the viewer tells of each packet when it came.
    var tellsOfPackets = true
    /// Sound that the viewer does not tell of although it came, by sequence number.
    var hides: (@Sendable (UInt16) -> Bool)?
    /// Whether the viewer asks for key frames only while packets of pictures come, as browsers do.
    var asksOnlyForWhatComes = false
    private var lastPictureAt: MonotonicTime?
    /// Whether the viewer asks again for packets of sound, as browsers do not.
    var asksForSound = true
    /// Playout delays that the viewer's packets asked for, by time stamp.
    private(set) var playoutDelays: [(sequenceNumber: Int64, delay: PlayoutDelay?)] = []
    /// The video as it came, by SSRC and sequence number: one number must never stand for two packets.
    private var seen: [UInt64: [UInt8]] = [:]
    private(set) var ambiguousPackets = 0
    /// RTX packets, and those of them that say for which m-line they are.
    private(set) var repairs = 0
    private(set) var namedRepairs = 0
    private(set) var repeatedPackets = 0
    /// Leaves packets out that would have come, and so has them sent again: of video by their count, and of sound by
    /// their numbers.
    var dropsVideo: (@Sendable (Int) -> Bool)?
    var dropsSound: (@Sendable (UInt16) -> Bool)?
    private var videoDatagrams = 0
    private(set) var audioPackets = 0
    private(set) var soundSequence = SoundSequence()
    private(set) var pictureOrder = PictureOrder()
    /// Time stamps of all sound that came, by itself or in a later packet, and how many packets held earlier ones.
    private(set) var heardTimes: Set<UInt32> = []
    private(set) var redundantPackets = 0
    private(set) var frameMarks: Set<UInt32> = []

    private var ice = ICEControllingAgent.Configuration()
    private var nextReport = MonotonicTime.distantFuture
    private var nextKeyFrameRequest = MonotonicTime.distantFuture
    private let clock = WallClock(unixNanoseconds: 1_700_000_000_000_000_000, at: .zero)

    init(
        role: Role, address: TransportAddress, identity: DTLSIdentity, seed: UInt64, rids: [String] = [],
        pictures: [SyntheticVideo.Settings], feedback: ClientOffer.Feedback = .transportWide,
        checksConsent: Bool = true
    ) throws {
        self.role = role
        if !checksConsent { (ice.consentInterval, ice.consentTimeout) = (.seconds(86_400), .seconds(86_400)) }
        localAddress = address
        outerAddress = address
        var random = SeededGenerator(seed: seed)
        dtls = try DTLSContext(identity: identity)
        let requests: [ClientOffer.Request] =
            role == .publisher
            ? [.publishAudio, .publishVideo(Self.codec(of: pictures), rids: rids)]
            : [.playAudio, .playVideo]
        offer = ClientOffer(
            requests, credentials: ICECredentials(using: &random),
            fingerprint: SDPFingerprint(
                algorithm: identity.fingerprint.algorithm.rawValue, bytes: identity.fingerprint.bytes),
            feedback: feedback, using: &random)
        if feedback == .congestionControl { arrivals = CongestionControlFeedbackBuilder(senderSSRC: 1) }
        videos = pictures.map { SyntheticVideo($0, using: &random) }
        self.random = random
    }

    private static func codec(of pictures: [SyntheticVideo.Settings]) -> MediaCodec.Family {
        guard let layered = pictures.first(where: { $0.spatialLayers > 1 }) else { return .vp8 }
        return layered.layeredCodec == .av1 ? .av1 : .vp9
    }

    /// Of whatever codec.
    private var framesDecoded: Int { decoder.framesDecoded + spatialDecoder.framesDecoded }

    var isConnected: Bool { connection?.isConnected ?? false }
    var isClosed: Bool { connection?.isClosed ?? false }

    /// Takes the server's answer in and begins to connect.
    func start(_ answer: SessionDescription, at now: MonotonicTime) throws {
        let plan = try ClientPlan(answer, to: offer)
        connection = ClientConnection(
            credentials: offer.credentials, plan: plan, localAddress: localAddress, dtls: dtls,
            configuration: ice, at: now, using: &random)
        for line in plan.lines {
            if role == .viewer, let track = ReceivingTrack(line: line) { received.append(track) }
            for encoding in line.encodings {
                guard let track = SendingTrack(line: line, encoding: encoding, using: &random) else {
                    continue
                }
                if line.kind == .video { videoTracks.append(track) } else { audioTrack = track }
            }
        }
    }

    // MARK: Time

    var deadline: MonotonicTime {
        guard !isClosed else { return .distantFuture }
        let media = isSendingMedia ? min(nextVideo, nextAudio) : .distantFuture
        let feedback = received.compactMap(\.deadline).min() ?? .distantFuture
        let request = role == .viewer ? nextKeyFrameRequest : .distantFuture
        let arrivals = min(self.feedback.deadline ?? .distantFuture, nextArrivals)
        return min(connection?.deadline ?? .distantFuture, media, nextReport, feedback, request, arrivals)
    }

    func advance(to now: MonotonicTime, into sink: inout CollectingSink) {
        guard let connection else { return }
        if let due = connection.deadline, now >= due {
            connection.advance(to: now, using: &random, into: &sink)
            takeEvents(at: now)
        }
        guard connection.isConnected else { return }
        if isSendingMedia {
            if now >= nextVideo { sendFrame(at: now, over: connection, into: &sink) }
            if now >= nextAudio { sendAudio(at: now, over: connection, into: &sink) }
        }
        if now >= nextReport { sendReports(at: now, over: connection, into: &sink) }
        for index in received.indices {
            let packets = received[index].feedback(from: 1, rtt: connection.roundTripTime, at: now)
            guard received[index].line.kind == .video || asksForSound else { continue }
            connection.sendFeedback(packets, into: &sink)
        }
        let told = feedback.feedbackDue(at: now)
        if !told.isEmpty { soundSequence.noteReport() }
        connection.sendFeedback(told.map { .transportFeedback($0) }, into: &sink)
        if now >= nextArrivals {
            nextArrivals = .distantFuture
            for report in arrivals?.build(at: now) ?? [] {
                connection.sendFeedback([.congestionControlFeedback(report)], into: &sink)
            }
        }
        askForKeyFrame(at: now, over: connection, into: &sink)
    }

    /// Whether there was a picture lately.
    private func isPlaying(at now: MonotonicTime) -> Bool {
        guard !decoder.isWaitingForKeyFrame || !spatialDecoder.isWaitingForKeyFrame, let lastFrameAt else {
            return false
        }
        return now < lastFrameAt + .milliseconds(1_200)
    }

    /// As browsers do while they have nothing to show.
    private func askForKeyFrame(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        guard role == .viewer, now >= nextKeyFrameRequest else { return }
        nextKeyFrameRequest = now + .milliseconds(300)
        guard !isPlaying(at: now), let track = received.first(where: { $0.line.kind == .video }),
            track.stream.counters.packets > 0, !asksOnlyForWhatComes || hasPictures(at: now)
        else { return }
        let indication = PictureLossIndication(senderSSRC: 1, mediaSSRC: track.source.ssrc)
        connection.sendFeedback([.pictureLossIndication(indication)], into: &sink)
    }

    /// Whether packets of pictures came within five seconds.
    private func hasPictures(at now: MonotonicTime) -> Bool {
        lastPictureAt.map { now < $0 + .seconds(5) } ?? false
    }

    func askForKeyFrame(into sink: inout CollectingSink) {
        guard let connection, let track = received.first(where: { $0.line.kind == .video }) else { return }
        let indication = PictureLossIndication(senderSSRC: 1, mediaSSRC: track.source.ssrc)
        connection.sendFeedback([.pictureLossIndication(indication)], into: &sink)
    }

    /// Says that it can take in so many bits a second of its pictures.
    func say(_ estimate: UInt64, into sink: inout CollectingSink) {
        let ssrcs = received.filter { $0.line.kind == .video }.map(\.source.ssrc)
        let said = ReceiverEstimatedMaximumBitrate(senderSSRC: 1, bitrate: estimate, ssrcs: ssrcs)
        connection?.sendFeedback([.receiverEstimatedMaximumBitrate(said)], into: &sink)
    }

    /// Says whatever it is told to.
    func send(_ feedback: [RTCPPacket], into sink: inout CollectingSink) {
        connection?.sendFeedback(feedback, into: &sink)
    }

    func ask(for lost: [UInt16], of kind: MediaKind, into sink: inout CollectingSink) {
        guard let connection, let track = received.first(where: { $0.line.kind == kind }) else { return }
        let request = NegativeAcknowledgement(senderSSRC: 1, mediaSSRC: track.source.ssrc, lost: lost)
        connection.sendFeedback([.nack(request)], into: &sink)
    }

    private func takeEvents(at now: MonotonicTime) {
        for event in connection?.takeEvents() ?? [] {
            events.append(event)
            guard case .connected = event else { continue }
            connectedAt = now
            nextReport = now + .milliseconds(300)
            nextKeyFrameRequest = now + .milliseconds(300)
            guard role == .publisher else { continue }
            nextVideo = now
            nextAudio = now
        }
    }

    private func sendFrame(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        for number in videos.indices {
            for packet in videos[number].nextFrame(stamp: UInt64(bitPattern: now.nanoseconds)) {
                for index in videoTracks.indices where videos.count == 1 || index == number {
                    guard !switchedOff.contains(index) else { continue }
                    try? videoTracks[index].send(
                        packet.payload, timestamp: packet.timestamp, marker: packet.marker,
                        dependencyDescriptor: packet.dependencyDescriptor, transport: &transport, at: now,
                        over: connection, into: &sink)
                }
            }
        }
        nextVideo = now + (videos.first?.frameInterval ?? .seconds(1))
    }

    private func sendAudio(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        var payload = Self.sound(at: audioTimestamp)
        let blocks = audioTrack?.redundantBlocks
        if let type = blocks, redundantSound != nil {
            payload = redundantSound?.wrap(payload, timestamp: audioTimestamp, type: type) ?? payload
            payload = spoilsSound?(spokenTimes.count, payload) ?? payload
        }
        try? audioTrack?.send(
            payload, timestamp: audioTimestamp, marker: false,
            audioLevel: redundantSound == nil ? nil : Self.soundLevel,
            isRedundant: blocks != nil && redundantSound != nil, transport: &transport, at: now,
            over: connection,
            into: &sink)
        spokenTimes.append(audioTimestamp)
        audioTimestamp &+= 960
        nextAudio = now + .milliseconds(20)
    }

    /// -dBov.
    static let soundLevel: UInt8 = 30

    /// 20 ms of sound that tell when they were.
    static func sound(at timestamp: UInt32) -> [UInt8] {
        [0x78] + (0..<80).map { UInt8(truncatingIfNeeded: timestamp >> UInt32($0 % 4 * 8)) }
    }

    private func sendReports(
        at now: MonotonicTime, over connection: ClientConnection, into sink: inout CollectingSink
    ) {
        nextReport = now + .seconds(1)
        let senders = (videoTracks + [audioTrack].compactMap(\.self)).compactMap {
            $0.report(at: now, clock: clock)
        }
        var blocks: [ReportBlock] = []
        for index in received.indices {
            if let block = received[index].reportBlock(at: now) { blocks.append(block) }
        }
        connection.sendReports(senders: senders, receptions: blocks, into: &sink)
    }

    // MARK: Datagrams

    func receive(
        _ datagram: [UInt8], from source: TransportAddress, at now: MonotonicTime,
        into sink: inout CollectingSink
    ) {
        guard let connection else { return }
        switch DatagramKind(datagram.span) {
        case .stun, .dtls:
            connection.receive(datagram.span, from: source, at: now, using: &random, into: &sink)
            takeEvents(at: now)
        case .rtp: receiveMedia(datagram, over: connection, at: now, into: &sink)
        case .rtcp: receiveControl(datagram, over: connection, at: now, into: &sink)
        case nil: break
        }
    }

    private func receiveMedia(
        _ datagram: [UInt8], over connection: ClientConnection, at now: MonotonicTime,
        into sink: inout CollectingSink
    ) {
        var bytes = datagram
        var span = bytes.mutableSpan
        guard !drops(datagram) else { return }
        guard let length = try? connection.unprotect(&span) else { return }
        let plain = Array(bytes[..<length])
        guard let header = try? RTPHeader(parsing: plain.span),
            let index = received.firstIndex(where: { $0.takes(ssrc: header.ssrc) })
        else { return }
        if tellsOfPackets, received[index].line.kind == .video || hides?(header.sequenceNumber) != true,
            let id = received[index].line.extensions.transportSequenceNumber,
            let number = header.extensionValue(TransportSequenceNumber.self, id: id, in: plain.span)
        {
            feedback.mediaSSRC = header.ssrc
            feedback.record(number.value, at: now)
        }
        if tellsOfPackets, arrivals != nil {
            arrivals?.record(header.sequenceNumber, of: header.ssrc, at: now)
            nextArrivals = min(nextArrivals, now + .milliseconds(50))
        }
        if let id = received[index].line.extensions.absoluteSendTime,
            let range = header.extensionRange(id: id, in: plain.span), range.count == 3
        {
            let sent = plain[range].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            if let said = estimates.receive(header.payloadRange.count, sent: sent, at: now) {
                say(said, into: &sink)
            }
        }
        noteRepair(header, in: plain, for: received[index])
        let own = ownSound(of: header, in: plain, for: received[index])
        guard let packet = (try? received[index].receive(own.span, at: now)) ?? nil
        else { return }
        if packet.codec.isVideo {
            lastPictureAt = now
            let before = framesDecoded
            if packet.codec.video == .vp9 || packet.codec == .av1 {
                spatialDecoder.receive(packet, header, in: own, received[index].line.extensions)
            } else {
                decoder.receive(packet.header, payload: packet.payload, sequenceNumber: packet.sequenceNumber)
                keyFrames.receive(packet.header, payload: packet.payload, at: now)
            }
            if framesDecoded > before { lastFrameAt = now }
            if framesDecoded > 0 { firstFrameAt = firstFrameAt ?? now }
            let id = received[index].line.extensions.playoutDelay
            playoutDelays.append(
                (packet.sequenceNumber, header.extensionValue(PlayoutDelay.self, id: id, in: plain.span)))
            if let mark = try? SyntheticMark(reading: packet.payload.span) {
                frameMarks.insert(mark.frameNumber)
                pictureOrder.note(packet.sequenceNumber, picture: mark.frameNumber)
            }
        } else {
            audioPackets += 1
            heardTimes.insert(packet.header.timestamp)
            heardSound[packet.header.timestamp] = packet.payload
            let sent = packet.payload.dropFirst().prefix(4).reversed().reduce(UInt32(0)) {
                $0 << 8 | UInt32($1)
            }
            soundShift = soundShift ?? packet.header.timestamp &- sent
            if let id = received[index].line.extensions.audioLevel,
                let range = packet.header.extensionRange(id: id, in: own.span), range.count == 1
            {
                heardLevels[packet.header.timestamp] = own[range.lowerBound] & 0x7F
            }
            soundSequence.note(packet.sequenceNumber)
        }
    }

    /// A packet without the earlier sound that it carries, which is noted (RFC 2198 §3); else the packet itself.
    private func ownSound(of header: RTPHeader, in packet: [UInt8], for track: ReceivingTrack) -> [UInt8] {
        guard let format = track.line.formats.first(where: { $0.redundancyPayloadType == header.payloadType })
        else { return packet }
        redundantPackets += 1
        var position = header.payloadRange.lowerBound
        var blocks: [(offset: UInt32, length: Int)] = []
        while position + 4 <= packet.count, packet[position] & 0x80 != 0 {
            let word = packet[position..<position + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            blocks.append(((word >> 10) & 0x3FFF, Int(word & 0x3FF)))
            position += 4
        }
        position += 1
        for block in blocks {
            // What the publisher wrote says which of its packets it was.
            heardTimes.insert(header.timestamp &- block.offset)
            position += block.length
        }
        var own = Array(packet[..<header.payloadRange.lowerBound])
        own[1] = own[1] & 0x80 | format.payloadType
        return own + packet[min(position, packet.count)...]
    }

    private func noteRepair(_ header: RTPHeader, in packet: [UInt8], for track: ReceivingTrack) {
        guard header.ssrc == track.source.repairSSRC else { return }
        repairs += 1
        var cursor = RTPExtensionCursor(header)
        while let element = cursor.next(in: packet.span) {
            guard element.id == track.line.extensions.mid else { continue }
            if Array(packet[element.range]) == Array(track.line.mid.utf8) { namedRepairs += 1 }
        }
    }

    /// Before it is decrypted, so that it may come again.
    private func drops(_ datagram: [UInt8]) -> Bool {
        guard let header = try? RTPHeader(parsing: datagram.span),
            let track = received.first(where: { $0.takes(ssrc: header.ssrc) })
        else { return false }
        noteRepetition(of: datagram)
        guard track.line.kind == .video else { return dropsSound?(header.sequenceNumber) ?? false }
        videoDatagrams += 1
        return dropsVideo?(videoDatagrams - 1) ?? false
    }

    private func noteRepetition(of datagram: [UInt8]) {
        let key =
            datagram[2..<4].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            | datagram[8..<12].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } << 16
        if let before = seen.updateValue(datagram, forKey: key) {
            repeatedPackets += 1
            if before != datagram { ambiguousPackets += 1 }
        }
    }

    private func receiveControl(
        _ datagram: [UInt8], over connection: ClientConnection, at now: MonotonicTime,
        into sink: inout CollectingSink
    ) {
        for packet in connection.controlPackets(in: datagram) {
            switch packet {
            case .senderReport(let report):
                for index in received.indices { received[index].receive(report, at: now) }
            case .nack(let nack):
                if nack.mediaSSRC == audioTrack?.ssrc { repairsOfSoundAsked += nack.lost.count }
                for index in videoTracks.indices where videoTracks[index].ssrc == nack.mediaSSRC {
                    try? videoTracks[index].resend(
                        nack.lost, transport: &transport, over: connection, into: &sink)
                }
            case .pictureLossIndication(let indication): makeKeyFrame(of: indication.mediaSSRC)
            case .fullIntraRequest(let request): makeKeyFrame(of: request.entries.first?.ssrc ?? 0)
            case .transportFeedback: transportFeedback += 1
            default: break
            }
        }
    }

    private func makeKeyFrame(of ssrc: UInt32) {
        keyFrameRequests += 1
        for index in videos.indices where videos.count == 1 || videoTracks[index].ssrc == ssrc {
            videos[index].requestKeyFrame()
        }
    }

    /// The client leaves without a word.
    func vanish() {
        connection = nil
        nextVideo = .distantFuture
        nextAudio = .distantFuture
        nextReport = .distantFuture
    }

    func close(into sink: inout CollectingSink) {
        connection?.close(into: &sink)
    }
}
