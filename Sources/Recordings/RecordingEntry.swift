import Base
import Foundation
import Store

/// What is known of one recording: a file, or one of several parts of one.
package struct RecordingEntry: Codable, Equatable, Sendable {
    /// What a file shows of a stream.
    package enum Kind: String, Codable, Sendable, CaseIterable {
        /// All from when it began.
        case recording
        /// The last seconds before somebody asked for them.
        case clip
    }

    /// Whether the file may still grow.
    package enum State: String, Codable, Sendable {
        case recording, ended
    }

    /// As the API and metrics say it.
    package enum EndReason: String, Codable, Sendable, CaseIterable {
        /// Somebody stopped it.
        case stopped
        case streamEnded = "stream-ended"
        /// What came next did not fit into the file, and stands in the next part.
        case continued
        case diskFull = "disk-full"
        /// The disk took nothing more: it is read-only or broken, or too slow.
        case storage
        case failed
        /// The server ended meanwhile.
        case interrupted

        /// What a file that cannot be written any more ends for.
        init(_ failure: FileError) {
            // EINVAL: what was to be written made no sense, which is not the disk's doing.
            self = failure.isFull ? .diskFull : failure.code == EINVAL ? .failed : .storage
        }
    }

    /// Names it among all recordings.
    package let id: String
    /// The stream's name.
    package let stream: String
    /// 1, and more where the recording went on in another file.
    package let part: Int
    /// Nil for a recording.
    private let isClip: Bool?
    /// What its maker calls it; nil for nothing.
    package let title: String?
    /// As it is on the disk.
    package var state = State.recording
    /// Milliseconds since 1970.
    package internal(set) var startedAt: Int64
    /// When what it begins with was shown, in milliseconds since 1970; nil where only `startedAt` is known.
    var filmedAt: Int64?
    /// Milliseconds since 1970; nil while it is under way.
    package var endedAt: Int64?
    /// Nil while it is under way.
    package var endReason: EndReason?
    /// How long it plays; of one that goes on, as far as it is on the disk.
    package var milliseconds: Int64 = 0
    /// In bytes, as far as they are on the disk.
    package var size: Int64 = 0
    /// Nil until there is something in it.
    package var fileExtension: String?
    /// Which tier watching took when it began, for when nothing is known of the stream any more; nil for none.
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

    /// When what it shows was shown to viewers.
    package var time: Range<WallTime> {
        let begin = filmedAt ?? startedAt
        return WallTime(milliseconds: begin)..<WallTime(milliseconds: begin + max(milliseconds, 0))
    }

    /// What all parts of a recording have in common.
    package var base: Substring { part > 1 ? id.prefix { $0 != "-" } : id[...] }
    package var kind: Kind { isClip == true ? .clip : .recording }
    /// Of the file.
    package var contentType: String { fileExtension == "mp4" ? "video/mp4" : "video/webm" }
    /// Nil before there is a file.
    package var fileName: String? { fileExtension.map { "\(id).\($0)" } }

    /// As the API and webhooks say it.
    /// - Parameters:
    ///   - url: where the file is to be had; nil before there is one.
    ///   - hls: where its playlist is; nil where there is none.
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

    /// 60 random bits: not to be guessed, and never the same.
    static func makeID() -> String {
        let alphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")
        return String((0..<12).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}

/// Where recordings are kept.
package struct RecordingSettings: Sendable {
    /// Made when it is missing.
    package var directory: String
    /// Bytes of the disk that stay free: a recording ends before it takes them.
    package var reserve: Int64 = 256 << 20

    package init(directory: String) {
        self.directory = directory
    }
}
