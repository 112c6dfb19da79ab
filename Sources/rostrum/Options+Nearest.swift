import Base

extension Option {
    /// The end of a message about an unknown option: `; did you mean http?`, or where to find all options.
    static func advice(instead name: some StringProtocol, of options: [Option] = all) -> String {
        guard let meant = NearestName.of(String(name), among: options.map(\.name)) else {
            return "; see rostrum --help for all options"
        }
        return "; did you mean \(meant)?"
    }
}
