import Base

extension StageDetails {
    /// What a stream's programme takes beside being let in: a token that names a tier.
    ///
    /// Of what is said around the programme, such as comments, it shuts nobody out.
    package struct Gate: Equatable, Sendable, Codable {
        /// Which of a token's tiers opens it; tiers have no order.
        package var tier: String
        /// For so long everybody may watch without it, in seconds; once for each viewer and stream.
        package var freeSeconds = 0
        /// Where the tier is to be had, an https address; nil where nobody is told.
        package var unlock: String?

        package init(tier: String, freeSeconds: Int = 0, unlock: String? = nil) {
            self.tier = tier
            self.freeSeconds = freeSeconds
            self.unlock = unlock
        }

        /// In seconds.
        package static let freeRange = 0...600
        /// In bytes, of `unlock`.
        package static let addressLength = 500

        var isValid: Bool {
            Tier.isName(tier) && Self.freeRange.contains(freeSeconds)
                && unlock.map(Self.isAddress) ?? true
        }

        /// Whether pages may link to it: without characters that could end it where it is written down.
        private static func isAddress(_ text: String) -> Bool {
            let scheme = "https://"
            return text.hasPrefix(scheme) && (scheme.utf8.count + 1...addressLength).contains(text.utf8.count)
                && text.utf8.allSatisfy {
                    (0x21...0x7E).contains($0) && !#""'<>\^`{|}"#.utf8.contains($0)
                }
        }

        /// Whether it is open to somebody: who has the tier, and whose work it is to be there.
        /// - Parameters:
        ///   - sender: nil for somebody without a name.
        ///   - isOnStage: whether they are the stream's host or speak there.
        package func admits(_ sender: Stage.Sender?, isOnStage: Bool) -> Bool {
            guard let sender else { return false }
            return isOnStage || sender.authority == .admin || sender.mayModerate
                || sender.tiers.contains(tier)
        }

        /// As the API shows it; it takes the same members.
        package var json: JSON {
            .object([
                "tier": .string(tier), "freeSeconds": .integer(freeSeconds), "unlock": .text(unlock),
            ])
        }
    }
}
