import Base
import Foundation

/// What is known of one recording: a file, or one of several parts of one.
package struct RecordingEntry: Codable, Equatable, Sendable {
    package enum State: String, Codable, Sendable {
        case recording, ended
    }

    package enum EndReason: String, Codable, Sendable, CaseIterable {
        /// Somebody stopped it.
        case stopped
        case streamEnded = "stream-ended"
        /// What came next did not fit into the file, and stands in the next part.
        case continued
        case diskFull = "disk-full"
        case failed
        /// The server ended meanwhile.
        case interrupted
    }

    /// Names it among all recordings.
    package let id: String
    package let stream: String
    /// 1, and more where the recording went on in another file.
    package let part: Int
    package var state = State.recording
    /// Milliseconds since 1970.
    package let startedAt: Int64
    package var endedAt: Int64?
    package var endReason: EndReason?
    /// How long it plays; of one that goes on, as far as it is on the disk.
    package var milliseconds: Int64 = 0
    package var size: Int64 = 0
    /// Nil until there is something in it.
    package var fileExtension: String?

    init(id: String, stream: StreamID, part: Int, startedAt: Int64) {
        self.id = id
        self.stream = stream.description
        self.part = part
        self.startedAt = startedAt
    }

    package var contentType: String { fileExtension == "mp4" ? "video/mp4" : "video/webm" }
    package var fileName: String? { fileExtension.map { "\(id).\($0)" } }

    package var url: String? { fileName.map { "/v1/streams/\(stream)/recordings/\($0)" } }

    package var json: JSON {
        .object([
            "id": .string(id), "part": .integer(part), "state": .string(state.rawValue),
            "startedAt": .time(WallTime(milliseconds: startedAt)),
            "endedAt": .time(endedAt.map { WallTime(milliseconds: $0) }),
            "endReason": .text(endReason?.rawValue),
            "duration": .number(Double(milliseconds) / 1_000), "size": .integer(size),
            "contentType": .text(fileExtension == nil ? nil : contentType), "url": .text(url),
        ])
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
