// Fuzz entry of addresses as text, as proxies and offers name them: what is read is the same when it is written and
// read again.
// Seeds: Addresses/*.txt

import Base

func fuzzAddress(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    for word in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: word, as: UTF8.self)
        if let ip = IPAddress(text), IPAddress(ip.description) != ip {
            fatalError("\(text) is \(ip), and that is something else")
        }
        if let address = TransportAddress(text), TransportAddress(address.description) != address {
            fatalError("\(text) is \(address), and that is something else")
        }
    }
}
