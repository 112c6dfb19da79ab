import Base
import Forwarding
import Ingest
import Peer
import Transcoder
import Wire

/// Where a publisher's media goes, once there is a session for it.
struct IngestInlet: Sendable {
    /// Media by the places of its sources; nil for what does not come.
    struct Sources: Sendable {
        let audio: Int?
        let video: Int?
        let plans: [SourcePlan]
        /// Of pictures that are made anew; nil where none are.
        let converted: VideoCodec?
        /// Whether players may take those as they come.
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
        /// Of HEVC: main and main 10.
        private static let passableProfiles: Set<UInt8> = [1, 2]

        /// As the transcoder makes it.
        private static let audioPlan = SourcePlan(
            mid: "a", kind: .audio, formats: [MediaFormat(codec: .opus, payloadType: 111)])
        private static let convertedPlan = SourcePlan(
            mid: videoMid, kind: .video, formats: [MediaFormat(codec: .vp8, payloadType: 96)])

        /// Of pictures that go on as they come; nil for those that never do.
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
                    answersKeyFrameRequests: false)
            }
        }
    }

    let session: SessionID
    let sources: Sources
    /// Nil where nothing is decoded.
    let transcoder: TranscoderSupervisor?
    /// Where HLS finds pictures as they come.
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

    /// A picture that viewers get as it is.
    func send(_ picture: IngestPicture) {
        guard let place = sources.video else { return }
        var packets = InjectedPackets()
        for packet in picture.packets {
            packets.append(packet.span, source: place, captured: picture.captured)
        }
        // A worker that takes nothing is far behind: it drops pictures as a full socket would.
        _ = worker.post(.ingest(session, packets))
    }

    /// A packet of the sound that the transcoder made.
    func send(sound: OutputPacket) { send(sound, to: sources.audio) }

    /// A packet of the picture that the transcoder made.
    func send(converted picture: OutputPacket) { send(picture, to: sources.video) }

    private func send(_ packet: OutputPacket, to source: Int?) {
        guard let source else { return }
        var packets = InjectedPackets()
        packets.append(packet.bytes.span, source: source, captured: packet.captured)
        _ = worker.post(.ingest(session, packets))
    }
}
