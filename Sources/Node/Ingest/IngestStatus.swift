import Base
import Ingest
import Net
import Stage
import Wire

/// What arrives from a publisher by RTMP or SRT, for the host's page and for the publisher.
package struct IngestStatus: Equatable, Sendable {
    let participant: ParticipantID
    /// The protocol's name for programs, `rtmp` or `srt`.
    let name: String
    let formats: IngestFormats
    /// The latest measurements of the media, and the advice that follows from them.
    var report = IngestReport()
    /// The latest measurements of the link; nil for RTMP, which reports none.
    var link: SRTLink?

    init(_ participant: ParticipantID, by name: String, _ formats: IngestFormats) {
        self.participant = participant
        self.name = name
        self.formats = formats
    }

    /// Adds advice before the next report comes.
    mutating func note(_ notice: IngestNotice) {
        if !report.notices.contains(notice) { report.notices.append(notice) }
    }

    /// Bit rates are in bits per second, the key frame interval is in seconds.
    package var json: JSON {
        var video = JSON.null
        if let codec = formats.codec {
            video = .object([
                "codec": .string(codec.name), "profile": formats.profile.map { .integer(Int($0)) } ?? .null,
                "width": formats.resolution.map { .integer($0.width) } ?? .null,
                "height": formats.resolution.map { .integer($0.height) } ?? .null,
                "framesPerSecond": .number((report.framesPerSecond * 10).rounded() / 10),
                "bitrate": .integer(report.videoBitrate),
                "keyFrameInterval": report.keyFrameInterval.map { .number(Double($0) / 1_000) } ?? .null,
                "converted": .bool(formats.conversion != nil),
            ])
        }
        var audio = JSON.null
        if formats.hasAudio {
            audio = .object([
                "codec": .string("AAC"), "sampleRate": formats.sampleRate.map { .integer($0) } ?? .null,
                "channels": formats.channels.map { .integer($0) } ?? .null,
                "bitrate": .integer(report.audioBitrate),
            ])
        }
        return .object([
            "participant": .string(participant.description), "protocol": .string(name), "video": video,
            "audio": audio, "link": link.map(Self.json) ?? .null,
            "advice": .array(
                report.notices.map { .object(["code": .string($0.code), "text": .string($0.text)]) }),
        ])
    }

    /// Round trip and latency are in milliseconds; the other members count packets.
    private static func json(_ link: SRTLink) -> JSON {
        .object([
            "roundTrip": .number((link.roundTrip * 10).rounded() / 10), "latency": .integer(link.latency),
            "received": .integer(link.received), "lost": .integer(link.lost),
            "retransmitted": .integer(link.retransmitted), "dropped": .integer(link.dropped),
        ])
    }
}
