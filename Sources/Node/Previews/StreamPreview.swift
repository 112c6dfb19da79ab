import Base
import Crypto
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
    /// Path and query, signed where streams are not public.
    package let url: String

    package var json: JSON {
        .object([
            "url": .string(url), "width": .integer(width), "height": .integer(height),
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

    var byteCount: Int { webP.count + jpeg.count }

    init(_ picture: PreviewPicture, about: StreamPreview) {
        self.about = about
        webP = picture.webP
        jpeg = picture.jpeg
    }
}

/// Addresses of previews: for everyone, or good for a while by their signature.
///
/// Whoever is shown a stream is shown such an address; a picture's address needs no token, because browsers send none
/// with an image.
package struct PreviewAddress: Sendable {
    /// Seconds for which an address is good.
    package static let lifetime = 86_400
    /// Clocks may differ by so many seconds.
    private static let leeway = 60

    /// Nil where everyone may see every stream.
    private let key: Secret<[UInt8]>?

    package init(key: Secret<[UInt8]>?) {
        self.key = key
    }

    /// A key of its own, so that what is signed here is never taken for a token.
    package static func key(from secret: Secret<[UInt8]>) -> Secret<[UInt8]> {
        Secret(HMAC.sha256(key: secret.exposed.span, Array("rostrum preview addresses".utf8).span))
    }

    /// Whether pictures may only be had by an address that somebody was given.
    package var isSigned: Bool { key != nil }

    /// Without the ending that names the format.
    package static func path(of stream: StreamID) -> String { "/v1/streams/\(stream)/preview" }

    /// The address of a picture taken at that time, which makes it another one than that of the picture before.
    package func url(of stream: StreamID, takenAt time: WallTime) -> String {
        let path = "\(Self.path(of: stream)).webp"
        guard let key else { return "\(path)?v=\(time.milliseconds)" }
        let seconds = String(time.milliseconds / 1_000)
        let lifetime = String(Self.lifetime)
        let signature = Self.signature(stream, seconds, lifetime, key)
        return "\(path)?ts=\(seconds)&ttl=\(lifetime)&sig=\(signature)"
    }

    /// Whether an address was made by us and is still good.
    /// - Parameters: `time`, `lifetime` and `signature`: as its query has them.
    package func isGood(
        for stream: StreamID, time: String, lifetime: String, signature: String, now: Int
    ) -> Bool {
        guard let key, let seconds = Int(time), let span = Int(lifetime), span > 0,
            span <= 10 * Self.lifetime,
            seconds <= now + Self.leeway, seconds > now - span
        else { return false }
        let expected = Array(Self.signature(stream, time, lifetime, key).utf8)
        return ConstantTime.areEqual(expected.span, Array(signature.utf8).span)
    }

    /// In hexadecimal.
    private static func signature(
        _ stream: StreamID, _ time: String, _ lifetime: String, _ key: Secret<[UInt8]>
    ) -> String {
        let signed = Array("\(path(of: stream))\n\(time)\n\(lifetime)".utf8)
        return HMAC.sha256(key: key.exposed.span, signed.span).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
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
