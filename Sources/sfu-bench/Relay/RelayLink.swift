import Base
import TURN

extension TURNClientAgent.Relay {
    /// The first relay by UDP of an answer's `Link` fields.
    ///
    /// - Returns: nil where none is named by an address in numbers: load goes where the user says, and a name may be
    ///   anybody's.
    /// - Source: RFC 9725 §4.6; RFC 7065 §3.1 (TURN's addresses).
    init?(links: String) {
        // A comma may stand within quotes, so the field is not cut at commas.
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
