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
        let result = register.whileDecoding(source) { () -> Result<Picture?, CodecError> in
            do throws(CodecError) { return .success(try decoder.decode(frame)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
