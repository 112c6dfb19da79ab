import Base
import Foundation
import Store

/// The description of one recorded file: a whole recording, one part of it, or a clip.
///
/// Stored as JSON next to the file, so members keep their names and new ones must be optional.
package struct RecordingEntry: Codable, Equatable, Sendable {
    /// What a file covers.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// Everything from the start of recording.
        case recording
        /// The last seconds before a request for it.
        case clip
    }

    /// Whether the file may still grow.
    package enum State: String, Codable, Sendable {
        case recording, ended
    }

    /// Why a file ended, in the words of the API and of metrics.
    package enum EndReason: String, Codable, Sendable, CaseIterable {
        /// It was stopped by request.
        case stopped
        case streamEnded = "stream-ended"
        /// What followed did not fit into this file, and is in the next part.
        case continued
        case diskFull = "disk-full"
        /// The disk accepted nothing more: it is read-only, broken or too slow.
        case storage
        case failed
        /// The server stopped or crashed.
        case interrupted

        /// The reason for a file that cannot be written any more.
        init(_ failure: FileError) {
            // EINVAL: the transcoder sent bytes that do not follow on what was written, so the disk is not to blame.
            self = failure.isFull ? .diskFull : failure.code == EINVAL ? .failed : .storage
        }
    }

    /// Unique among all recordings and clips.
    package let id: String
    /// The stream's name.
    package let stream: String
    /// 1 for the first file of a recording, and one more for each further file.
    package let part: Int
    /// Nil for a recording.
    private let isClip: Bool?
    /// Chosen for a clip by its maker; nil for none.
    package let title: String?
    /// As stored; a file under way becomes `ended` at the next start if the server dies.
    package var state = State.recording
    /// In milliseconds since 1970.
    package internal(set) var startedAt: Int64
    /// When viewers saw the beginning of the file, in milliseconds since 1970; nil if only `startedAt` is known.
    var filmedAt: Int64?
    /// In milliseconds since 1970; nil while it is under way.
    package var endedAt: Int64?
    /// Nil while it is under way.
    package var endReason: EndReason?
    /// Playing time; while it is under way, of what is durable.
    package var milliseconds: Int64 = 0
    /// In bytes; while it is under way, of what is durable.
    package var size: Int64 = 0
    /// `webm` or `mp4`; nil until the file has content.
    package var fileExtension: String?
    /// The tier that watching required at the start, for when the stream itself has been deleted; nil for none.
    package let tier: String?

    init(
        id: String, stream: StreamID, part: Int, startedAt: Int64, tier: String? = nil,
        kind: Kind = .recording, title: String? = nil
    ) {
        isClip = kind == .clip ? true : nil
        self.title = title
        self.tier = tier
        self.id = id
        self.stream = stream.description
        self.part = part
        self.startedAt = startedAt
    }

    /// When viewers saw what the file shows.
    package var time: Range<WallTime> {
        let begin = filmedAt ?? startedAt
        return WallTime(milliseconds: begin)..<WallTime(milliseconds: begin + max(milliseconds, 0))
    }

    /// The ID of the whole recording, which the IDs of all its parts begin with.
    package var base: Substring { part > 1 ? id.prefix { $0 != "-" } : id[...] }
    package var kind: Kind { isClip == true ? .clip : .recording }
    /// The file's media type.
    package var contentType: String { fileExtension == "mp4" ? "video/mp4" : "video/webm" }
    /// Nil until there is a file.
    package var fileName: String? { fileExtension.map { "\(id).\($0)" } }

    /// The entry in the words of the API and webhooks.
    /// - Parameters:
    ///   - url: the file's address; nil if there is no file yet.
    ///   - hls: the address of its playlist; nil if there is none.
    package func json(url: String?, hls: String?) -> JSON {
        .object([
            "id": .string(id), "kind": .string(kind.rawValue), "title": .text(title),
            "part": .integer(part), "state": .string(state.rawValue),
            "startedAt": .time(WallTime(milliseconds: startedAt)),
            "endedAt": .time(endedAt.map { WallTime(milliseconds: $0) }),
            "endReason": .text(endReason?.rawValue),
            "duration": .number(Double(milliseconds) / 1_000), "size": .integer(size),
            "contentType": .text(fileExtension == nil ? nil : contentType), "url": .text(url),
            "hls": .text(hls),
        ])
    }

    /// 60 random bits, which cannot be guessed; one of 32 characters stands for five of them.
    static func makeID() -> String {
        // Without characters that are easily confused: l and o, 0 and 1.
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<12).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}

/// Location of recordings, and the space that they leave free.
package struct RecordingSettings: Sendable {
    /// Created if it is missing.
    package var directory: String
    /// Bytes of the disk that stay free: a recording ends before it uses them.
    package var reserve: Int64 = 256 << 20

    package init(directory: String) {
        self.directory = directory
    }
}
