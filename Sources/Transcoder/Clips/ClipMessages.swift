import Wire

/// The only command of a clip job: create a clip.
package struct ClipCommand: Equatable, Sendable {
    /// Identifies the clip in reports.
    package var number: UInt64
    /// Length of the clip, in milliseconds; it ends now.
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

    /// - Throws: for a body that `bytes` cannot produce.
    package init(_ bytes: [UInt8]) throws(WireError) {
        var reader = MessageReader(bytes)
        number = try reader.uint64()
        milliseconds = try reader.uint32()
    }
}

/// A report about one clip.
package struct ClipReport: Equatable, Sendable {
    /// Either `refused`, or `accepted`, any number of `bytes`, and `finished` or `failed`.
    package enum Content: Equatable, Sendable {
        /// The clip is being created; it will have this length or slightly less.
        case accepted(milliseconds: UInt32)
        /// There is too little media, or another clip is in progress.
        case refused
        /// Bytes of the file, at this offset.
        case bytes(offset: UInt64, [UInt8])
        /// The file is complete.
        case finished(milliseconds: UInt32)
        /// The clip cannot be created.
        case failed
    }

    /// Number of the command.
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

    /// - Throws: for a body that `bytes` cannot produce.
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
