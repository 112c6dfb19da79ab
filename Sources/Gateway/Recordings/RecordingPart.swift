import Base
import HTTP
import Node
import Recordings

/// The part of a recording that a request wants.
/// - Source: RFC 9110 §14 (ranges), §13.1.2, §13.1.5 (If-Range).
struct RecordingPart {
    let response: HTTPResponse

    /// - Parameters:
    ///   - fragments: to be sent as they were while the file grew; nil for the file as it is.
    ///   - lifetime: what caches are told of one that has ended.
    /// - Returns: nil if there is no such file.
    init?(
        _ path: String, _ entry: RecordingEntry, _ request: HTTPRequest, fragments: FragmentIndex? = nil,
        lifetime: String = "private, max-age=3600"
    ) {
        var headers: HTTPHeaders = [
            "Accept-Ranges": "bytes", "Content-Type": entry.contentType, "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "cross-origin",
            "Cache-Control": entry.state == .ended ? lifetime : "no-store",
            "Content-Disposition": "inline; filename=\"\(entry.fileName ?? entry.id)\"",
        ]
        var status = 200
        var edit: HTTPFile.Edit?
        if let fragments { edit = { bytes, offset in fragments.restore(&bytes, from: offset) } }
        let file = HTTPFile(path: path, edit: edit) { size -> Range<Int>? in
            let count = min(size.bytes, fragments.map { Int(clamping: $0.size) } ?? size.bytes)
            let tag = EntityTag(value: "\(count)-\(size.changedAt)")
            headers.set("ETag", tag.description)
            if request.has(tag) {
                status = 304
                return 0..<0
            }
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
            response = Problem(416, nil, "The file has no such bytes.", headers: headers).response
        } else if status != 304 {
            response.file = file
        }
        self.response = response
    }
}

/// The `Range` field, as far as it is one range of bytes; others are answered with everything.
/// - Source: RFC 9110 §14.1.2.
enum ByteRange: Equatable {
    case from(Int, to: Int?)
    case last(Int)

    init?(_ field: String) {
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

    /// - Returns: nil where a file of that size has no such bytes.
    func range(of size: Int) -> Range<Int>? {
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
