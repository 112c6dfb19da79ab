import Base
import TURN

extension TURNClientAgent.Relay {
    /// The first relay over UDP in an answer's `Link` fields.
    ///
    /// - Returns: nil if none is named by a numeric address. Names are not resolved: the load is meant for the host
    ///   that the user named, and a name may lead anywhere.
    /// - Source: RFC 9725 §4.6; RFC 7065 §3.1 (TURN's addresses).
    init?(links: String) {
        // The field is not split at commas, because quoted values may contain them.
        let pattern = /<turn:([^>?]+)\?transport=udp>((?:\s*;\s*[a-z-]+="(?:[^"\\]|\\.)*")*)/
        for link in links.matches(of: pattern) {
            var members: [Substring: Substring] = [:]
            for member in link.2.matches(of: /([a-z-]+)="((?:[^"\\]|\\.)*)"/) {
                members[member.1] = member.2.replacing(/\\(.)/) { $0.1 }
            }
            guard members["rel"] == "ice-server", let username = members["username"],
                let password = members["credential"], let address = TransportAddress(String(link.1))
            else { continue }
            self.init(address: address, username: String(username), password: String(password))
            return
        }
        return nil
    }
}
