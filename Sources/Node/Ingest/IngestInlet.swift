import Base
import Forwarding
import Ingest
import Peer
import Transcoder
import Wire

/// The destination of a publisher's media, once it has a session: the session's worker and, where needed, the
/// transcoder.
struct IngestInlet: Sendable {
    /// The tracks of a publisher, and their numbers in the session's plan.
    struct Sources: Sendable {
        /// The number of the source; nil if the publisher sends no audio.
        let audio: Int?
        /// The number of the source; nil if the publisher sends no video.
        let video: Int?
        /// The sources in the order of their numbers.
        let plans: [SourcePlan]
        /// The codec of pictures that have to be re-encoded for browsers; nil if they pass unchanged.
        let converted: VideoCodec?
        /// Whether HLS may pass the original pictures to players, in spite of the re-encoding for browsers.
        let isPassable: Bool

        init(_ formats: IngestFormats) {
            audio = formats.hasAudio ? 0 : nil
            video = formats.hasVideo ? (formats.hasAudio ? 1 : 0) : nil
            converted = formats.conversion == nil ? nil : formats.codec
            isPassable = converted == .hevc && Self.passableProfiles.contains(formats.profile ?? 0)
            let video = converted == nil ? formats.codec.flatMap(Self.plan) : Self.convertedPlan
            plans = (formats.hasAudio ? [Self.audioPlan] : []) + (video.map { [$0] } ?? [])
        }

        /// Of the m-line with a picture.
        static let videoMid = "v"
        /// Of HEVC: Main and Main 10.
        private static let passableProfiles: Set<UInt8> = [1, 2]

        /// As the transcoder encodes it from AAC.
        private static let audioPlan = SourcePlan(
            mid: "a", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
        private static let convertedPlan = SourcePlan(
            mid: videoMid, kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])

        /// The plan for pictures that pass unchanged; nil for a codec that is always re-encoded.
        private static func plan(of codec: VideoCodec) -> SourcePlan? {
            let codec: MediaCodec? =
                switch codec {
                case .vp8: .vp8
                case .vp9: .vp9(profile: 0)
                case .h264: .h264(packetizationMode: 1)
                case .av1: .av1
                case .hevc: nil
                }
            return codec.map { codec in
                SourcePlan(
                    mid: videoMid, kind: .video,
                    formats: [MediaFormat(codec: codec, payloadType: PicturePacketizer.payloadType)],
                    // RTMP and SRT have no message that requests a key frame.
                    answersKeyFrameRequests: false)
            }
        }
    }

    let session: SessionID
    let sources: Sources
    /// Nil if the node has no transcoder.
    let transcoder: TranscoderSupervisor?
    /// Where HLS looks for the original pictures.
    let originals: OriginalPictures
    private let worker: WorkerHandle

    init(
        session: SessionID, worker: WorkerHandle, sources: Sources, transcoder: TranscoderSupervisor?,
        originals: OriginalPictures
    ) {
        self.session = session
        self.worker = worker
        self.sources = sources
        self.transcoder = transcoder
        self.originals = originals
    }

    /// Sends a picture to viewers unchanged.
    func send(_ picture: IngestPicture) {
        guard let place = sources.video else { return }
        var packets = InjectedPackets()
        for packet in picture.packets {
            packets.append(packet.span, source: place, captured: picture.captured)
        }
        // A worker that accepts no command is far behind: the picture is dropped, as a full socket would drop it.
        _ = worker.post(.ingest(session, packets))
    }

    /// Sends a packet of Opus from the transcoder.
    func send(sound: OutputPacket) { send(sound, to: sources.audio) }

    /// Sends a packet of a re-encoded picture from the transcoder.
    func send(converted picture: OutputPacket) { send(picture, to: sources.video) }

    private func send(_ packet: OutputPacket, to source: Int?) {
        guard let source else { return }
        var packets = InjectedPackets()
        packets.append(packet.bytes.span, source: source, captured: packet.captured)
        _ = worker.post(.ingest(session, packets))
    }
}
