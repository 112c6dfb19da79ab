import Wire

/// The one thing that is said to a job that keeps what a stream sent last: make a clip of it.
package struct ClipCommand: Equatable, Sendable {
    /// What reports call it.
    package var number: UInt64
    /// How much of the past, in milliseconds.
    package var milliseconds: UInt32

    package init(number: UInt64, milliseconds: UInt32) {
        self.number = number
        self.milliseconds = milliseconds
    }

    /// The command's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(number)
        writer.write(milliseconds)
        return writer.bytes
    }

    /// - Throws: for what `bytes` does not make.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        number = try reader.uint64()
        milliseconds = try reader.uint32()
    }
}

/// What becomes of a clip.
package struct ClipReport: Equatable, Sendable {
    /// In this order: refused, or accepted, bytes, and an end.
    package enum Content: Equatable, Sendable {
        /// It is being made, and will be so long or a little less.
        case accepted(milliseconds: UInt32)
        /// There is nothing to make it of.
        case refused
        /// Of the file, at this place.
        case bytes(offset: UInt64, [UInt8])
        /// The file is complete.
        case finished(milliseconds: UInt32)
        /// It cannot be made.
        case failed
    }

    /// Which of the job's clips.
    package var number: UInt64
    package var content: Content

    package init(number: UInt64, _ content: Content) {
        self.number = number
        self.content = content
    }

    /// The report's body.
    package var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.write(number)
        switch content {
        case .accepted(let milliseconds):
            writer.write(UInt8(1))
            writer.write(milliseconds)
        case .refused: writer.write(UInt8(2))
        case .bytes(let offset, let bytes):
            writer.write(UInt8(3))
            writer.write(offset)
            writer.write(bytes)
        case .finished(let milliseconds):
            writer.write(UInt8(4))
            writer.write(milliseconds)
        case .failed: writer.write(UInt8(5))
        }
        return writer.bytes
    }

    /// - Throws: for what `bytes` does not make.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        number = try reader.uint64()
        switch try reader.uint8() {
        case 1: content = .accepted(milliseconds: try reader.uint32())
        case 2: content = .refused
        case 3: content = .bytes(offset: try reader.uint64(), try reader.array())
        case 4: content = .finished(milliseconds: try reader.uint32())
        case 5: content = .failed
        default: throw .invalid(.transcoderMessage)
        }
    }
}
