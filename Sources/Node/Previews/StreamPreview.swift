import Base
import Transcoder

/// What is said of a stream's latest preview; the picture itself is asked for by its address.
package struct StreamPreview: Equatable, Sendable {
    /// In pixels, of the picture as it is shown.
    package let width: Int
    /// In pixels, of the picture as it is shown.
    package let height: Int
    /// When its key frame came.
    package let capturedAt: WallTime
    /// To be shown until the picture has come (blurha.sh).
    package let blurHash: String
    /// Nil where nobody serves it.
    package let url: String?

    /// The member `preview` of a stream.
    package var json: JSON {
        .object([
            "url": .text(url), "width": .integer(width), "height": .integer(height),
            "capturedAt": .time(capturedAt), "blurHash": .string(blurHash),
        ])
    }
}

/// A preview with its picture.
package struct StoredPreview: Equatable, Sendable {
    /// What is told of it without being asked.
    package let about: StreamPreview
    /// A whole file.
    package let webP: [UInt8]
    /// A whole file.
    package let jpeg: [UInt8]
    /// The same for those who may not see the stream: nothing can be made out.
    package let blurredWebP: [UInt8]
    /// A whole file.
    package let blurredJPEG: [UInt8]

    var byteCount: Int { webP.count + jpeg.count + blurredWebP.count + blurredJPEG.count }

    init(_ picture: PreviewPicture, about: StreamPreview) {
        self.about = about
        webP = picture.webP
        jpeg = picture.jpeg
        blurredWebP = picture.blurredWebP
        blurredJPEG = picture.blurredJPEG
    }
}

/// The latest preview of each stream, as far as memory goes.
///
/// When there are too many, those of streams that have ended go first, the one that is unchanged for longest before
/// others.
struct PreviewShelf {
    private struct Entry {
        var preview: StoredPreview
        var isEnded = false
        /// Grows with each change.
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

    private static func goesFirst(
        _ left: (key: StreamID, value: Entry), _ right: (key: StreamID, value: Entry)
    ) -> Bool {
        left.value.isEnded != right.value.isEnded ? left.value.isEnded : left.value.order < right.value.order
    }
}
