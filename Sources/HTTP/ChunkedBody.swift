/// Decodes a request body in the chunked transfer coding, which libwebsockets passes on undecoded.
///
/// A state machine that accepts any split of the input.
/// - Source: RFC 9112 §7.1 (chunks), §7.1.1 (extensions), §7.1.2 (trailer).
package struct ChunkedBody {
    /// Why a body is refused, with 400 or 413.
    package enum Failure: Error {
        case malformed
        case tooLarge
    }

    /// What the next byte belongs to.
    private enum Expectation {
        /// Hexadecimal digits of a chunk's size.
        case size
        /// The rest of the size line: chunk extensions, which are skipped.
        case sizeLine
        /// The chunk itself, of which this many bytes are missing.
        case data(Int)
        /// The line break after a chunk.
        case dataEnd
        /// Trailer fields, which are skipped, up to an empty line.
        case trailer
        case finished
    }

    /// Limit of one size line and of the whole trailer section, in bytes: both are outside of the body's limit.
    private static let maximumLineLength = 1_024

    /// What has been decoded; never longer than the limit.
    package private(set) var body: [UInt8] = []
    /// Of the decoded body, in bytes.
    private let limit: Int
    private var expectation = Expectation.size
    /// Size of the present chunk, as far as it has been read.
    private var size = 0
    private var lineLength = 0
    private var trailerLineIsEmpty = true
    private var trailerLength = 0

    /// - Parameter limit: of the decoded body, in bytes.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Whether the last chunk and the trailer have come.
    package var isFinished: Bool {
        if case .finished = expectation { return true }
        return false
    }

    /// Decodes more bytes; bytes after the end are ignored, as the connection closes after this request.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        var rest = unsafe bytes[...]
        while let byte = unsafe rest.first {
            if case .data(let remaining) = expectation {
                let count = unsafe min(remaining, rest.count)
                unsafe body.append(contentsOf: rest.prefix(count))
                unsafe rest = unsafe rest.dropFirst(count)
                expectation = count == remaining ? .dataEnd : .data(remaining - count)
                continue
            }
            if case .finished = expectation { return }
            try take(byte)
            unsafe rest = unsafe rest.dropFirst()
        }
    }

    /// Processes one byte outside of a chunk's data.
    private mutating func take(_ byte: UInt8) throws(Failure) {
        switch expectation {
        case .size:
            lineLength += 1
            guard lineLength <= Self.maximumLineLength else { throw .malformed }
            if let digit = Self.hexadecimalValue(byte) {
                // Checked before each digit, so that the shift cannot overflow.
                guard size <= limit else { throw .tooLarge }
                size = size << 4 | digit
            } else {
                guard lineLength > 1 else { throw .malformed }
                try endSize(byte)
            }
        case .sizeLine:
            lineLength += 1
            guard lineLength <= Self.maximumLineLength else { throw .malformed }
            if byte == 0x0A { try beginData() }
        case .dataEnd:
            if byte == 0x0D { return }
            guard byte == 0x0A else { throw .malformed }
            expectation = .size
            size = 0
            lineLength = 0
        case .trailer:
            trailerLength += 1
            guard trailerLength <= Self.maximumLineLength else { throw .malformed }
            switch byte {
            case 0x0A where trailerLineIsEmpty: expectation = .finished
            case 0x0A: trailerLineIsEmpty = true
            case 0x0D: break
            default: trailerLineIsEmpty = false
            }
        case .data, .finished:
            assertionFailure("data and end are handled before")
        }
    }

    /// Processes the byte after the size; a line feed without a carriage return is accepted as well.
    private mutating func endSize(_ byte: UInt8) throws(Failure) {
        switch byte {
        case 0x0A: try beginData()
        case 0x0D, UInt8(ascii: ";"), 0x20, 0x09: expectation = .sizeLine
        default: throw .malformed
        }
    }

    /// Begins a chunk's data, or the trailer after the last chunk, whose size is 0.
    private mutating func beginData() throws(Failure) {
        guard body.count + size <= limit else { throw .tooLarge }
        expectation = size == 0 ? .trailer : .data(size)
    }

    private static func hexadecimalValue(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte) - 0x30
        case 0x41...0x46: Int(byte) - 0x37
        case 0x61...0x66: Int(byte) - 0x57
        default: nil
        }
    }
}
