import Base
import Codecs
import Wire

/// Registers the source of frames while they are decoded, so that the server can attribute a crash.
final class RegisteredDecoder: PictureDecoder {
    private let decoder: VideoDecoder
    private let source: SourceKey
    private let register: DecodingRegister

    init(_ decoder: VideoDecoder, of source: SourceKey, in register: DecodingRegister) {
        self.decoder = decoder
        self.source = source
        self.register = register
    }

    func decode(_ frame: [UInt8]) throws(CodecError) -> Picture? {
        try register.whileDecoding(source) { () throws(CodecError) in try decoder.decode(frame) }
    }
}
