// Fuzz entry of DCEP: what parses means the same when written and read again.
// Seeds: DataChannel/*.hex

import Wire

func fuzzDataChannel(_ message: Span<UInt8>) {
    guard let control = try? DataChannelControl(parsing: message) else { return }
    let bytes = control.bytes
    guard bytes.count <= message.count else { fatalError("written longer than it was read") }
    guard let again = try? DataChannelControl(parsing: bytes.span), again == control else {
        fatalError("\(control) does not survive being written")
    }
}
