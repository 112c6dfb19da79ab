import Base
import Transcoder

/// The description of a stream's latest preview; clients load the picture itself from `url`.
package struct StreamPreview: Equatable, Sendable {
    /// In pixels, of the picture as it is shown.
    package let width: Int
    /// In pixels, of the picture as it is shown.
    package let height: Int
    /// When the transcoder was given its key frame, or the text of its card.
    package let capturedAt: WallTime
    /// A placeholder to show until the picture is loaded (blurha.sh).
    package let blurHash: String
    /// Nil where no server serves the picture.
    package let url: String?

    /// The member `preview` of a stream.
    package var json: JSON {
        .object([
            "url": .text(url), "width": .integer(width), "height": .integer(height),
            "capturedAt": .time(capturedAt), "blurHash": .string(blurHash),
        ])
    }
}

/// A preview with its image files.
package struct StoredPreview: Equatable, Sendable {
    /// The description that followers receive.
    package let about: StreamPreview
    /// A complete WebP file.
    package let webP: [UInt8]
    /// A complete JPEG file.
    package let jpeg: [UInt8]
    /// A blurred version for viewers who may not see the stream: nothing can be recognized in it.
    package let blurredWebP: [UInt8]
    /// The same as a JPEG file.
    package let blurredJPEG: [UInt8]

    /// Bytes of all four files.
    var byteCount: Int { webP.count + jpeg.count + blurredWebP.count + blurredJPEG.count }

    init(_ picture: PreviewPicture, about: StreamPreview) {
        self.about = about
        webP = picture.webP
        jpeg = picture.jpeg
        blurredWebP = picture.blurredWebP
        blurredJPEG = picture.blurredJPEG
    }
}

/// The latest preview of each stream, within a limit of memory.
///
/// When the limit is exceeded, previews of ended streams are dropped before others, and older ones before newer ones.
struct PreviewShelf {
    private struct Entry {
        var preview: StoredPreview
        var isEnded = false
        /// Grows with each stored preview: the least is the oldest.
        var order: UInt64
    }

    private let limit: Int
    private var entries: [StreamID: Entry] = [:]
    private(set) var byteCount = 0
    private var nextOrder: UInt64 = 0

    /// - Parameter limit: bytes of pictures.
    init(limit: Int) {
        self.limit = limit
    }

    subscript(_ stream: StreamID) -> StoredPreview? { entries[stream]?.preview }

    mutating func store(_ preview: StoredPreview, of stream: StreamID) {
        remove(stream)
        entries[stream] = Entry(preview: preview, order: nextOrder)
        nextOrder += 1
        byteCount += preview.byteCount
        while byteCount > limit, let first = entries.min(by: Self.goesFirst) { remove(first.key) }
    }

    mutating func setEnded(_ isEnded: Bool, _ stream: StreamID) {
        entries[stream]?.isEnded = isEnded
    }

    private mutating func remove(_ stream: StreamID) {
        guard let old = entries.removeValue(forKey: stream) else { return }
        byteCount -= old.preview.byteCount
    }

    /// Whether the left preview is dropped before the right one.
    private static func goesFirst(
        _ left: (key: StreamID, value: Entry), _ right: (key: StreamID, value: Entry)
    ) -> Bool {
        left.value.isEnded != right.value.isEnded ? left.value.isEnded : left.value.order < right.value.order
    }
}
