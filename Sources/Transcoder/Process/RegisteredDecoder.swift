import Base
import Codecs
import Wire

/// Says what is decoded while it is: should it kill the process, the server knows what it was.
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
