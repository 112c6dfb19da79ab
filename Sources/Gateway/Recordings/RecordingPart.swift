import Base
import HTTP
import Node
import Recordings

/// The response to a request for a recording's file or a range of it.
/// - Source: RFC 9110 §14 (ranges), §13.1.2 (If-None-Match), §13.1.5 (If-Range), §15.3.7 (206), §15.5.17 (416).
struct RecordingPart {
    let response: HTTPResponse

    /// - Parameters:
    ///   - fragments: sends the file in its fragmented form, as it was while it grew; nil for the file as stored.
    ///   - lifetime: `Cache-Control` of a recording that has ended.
    /// - Returns: nil if the file does not exist.
    init?(
        _ path: String, _ entry: RecordingEntry, _ request: HTTPRequest, fragments: FragmentIndex? = nil,
        lifetime: String = "private, max-age=3600"
    ) {
        var headers: HTTPHeaders = [
            "Accept-Ranges": "bytes", "Content-Type": entry.contentType, "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "cross-origin",
            // A file that still grows must not be kept.
            "Cache-Control": entry.state == .ended ? lifetime : "no-store",
            "Content-Disposition": "inline; filename=\"\(entry.fileName ?? entry.id)\"",
        ]
        var status = 200
        var edit: HTTPFile.Edit?
        if let fragments { edit = { bytes, offset in fragments.restore(&bytes, from: offset) } }
        let file = HTTPFile(path: path, edit: edit) { size -> Range<Int>? in
            // With fragments the file ends with the last one: a completed file's index of all samples is left out.
            let count = min(size.bytes, fragments.map { Int(clamping: $0.size) } ?? size.bytes)
            let tag = EntityTag(value: "\(count)-\(size.changedAt)")
            headers.set("ETag", tag.description)
            // Before the range: a 304 takes precedence (RFC 9110 §13.2.2).
            if request.has(tag) {
                status = 304
                return 0..<0
            }
            // A different tag in `If-Range`, or a date, means the whole file (RFC 9110 §13.1.5).
            let isSame = request.headers["if-range"].map { $0 == tag.description } ?? true
            guard isSame, let wanted = request.headers["range"].flatMap({ ByteRange($0) }) else {
                return 0..<count
            }
            guard let range = wanted.range(of: count) else {
                status = 416
                headers.set("Content-Range", "bytes */\(count)")
                return 0..<0
            }
            status = 206
            headers.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(count)")
            return range
        }
        guard let file else { return nil }
        var response = HTTPResponse(status: status, headers: headers)
        if status == 416 {
            response = Problem(416, nil, "The range is outside the file.", headers: headers).response
        } else if status != 304 {
            response.file = file
        }
        self.response = response
    }
}

/// A `Range` field with a single byte range; for any other the whole file is sent, as a server may ignore the field.
/// - Source: RFC 9110 §14.1.2.
package enum ByteRange: Equatable, Sendable {
    /// `bytes=FIRST-` or `bytes=FIRST-LAST`; `to` is inclusive.
    case from(Int, to: Int?)
    /// `bytes=-COUNT`: the last bytes.
    case last(Int)

    /// Parses a field; nil if it is malformed, has another unit or several ranges.
    package init?(_ field: String) {
        let text = field.trimmed
        guard text.lowercased().hasPrefix("bytes=") else { return nil }
        let parts = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else {
            return nil
        }
        switch (Int(parts[0]), Int(parts[1])) {
        case (let first?, let last):
            guard parts[1].isEmpty || last != nil, last.map({ $0 >= first }) ?? true else { return nil }
            self = .from(first, to: last)
        case (nil, let count?) where parts[0].isEmpty: self = .last(count)
        default: return nil
        }
    }

    /// The range within a file of this size, cut to its end; nil if it cannot be satisfied.
    package func range(of size: Int) -> Range<Int>? {
        switch self {
        case .from(let first, let last):
            guard first < size else { return nil }
            return first..<(min(last ?? size - 1, size - 1) + 1)
        case .last(let count):
            guard count > 0, size > 0 else { return nil }
            return max(size - count, 0)..<size
        }
    }
}
