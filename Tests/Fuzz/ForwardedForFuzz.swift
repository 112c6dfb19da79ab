// Fuzz entry of `X-Forwarded-For`: whatever a client sends, the proxies that are trusted say who it is; and networks
// are the same when they are written and read again.
// Seeds: Headers/*forwarded.txt

import Base
import HTTP

func fuzzForwardedFor(_ input: Span<UInt8>) {
    var bytes: [UInt8] = []
    for index in input.indices { bytes.append(input[index]) }
    let near = IPAddress(ipv4: 0x0A00_0007)
    let stranger = IPAddress(ipv4: 0xCB00_7109)
    // Each line is a field, or a network.
    for line in bytes.split(separator: 0x0A).prefix(64) {
        let text = String(decoding: line, as: UTF8.self)
        for hops in ["", ", \(near)", ",[\(near)]:80 , 127.0.0.1:1"] {
            let found = proxies.client(of: .loopback, forwardedFor: "\(text), \(stranger)\(hops)")
            guard found == stranger else { fatalError("\(text.debugDescription) makes \(stranger) \(found)") }
        }
        let told = proxies.client(of: .loopback, forwardedFor: "\(text),\(near)")
        guard told == proxies.client(of: near, forwardedFor: text) else {
            fatalError("\(text.debugDescription) depends on how a proxy is told")
        }
        guard proxies.client(of: stranger, forwardedFor: text) == stranger,
            TrustedProxies().client(of: .loopback, forwardedFor: text) == .loopback
        else { fatalError("\(text.debugDescription) is believed, and nobody is trusted") }
        if let network = TrustedProxies.Network(text) {
            guard TrustedProxies.Network(network.description) == network else {
                fatalError("\(text) is \(network), and that is something else")
            }
        }
    }
}

private let proxies = TrustedProxies(
    ["127.0.0.1", "10.0.0.0/8", "fd00::/8"].compactMap { TrustedProxies.Network($0) })
