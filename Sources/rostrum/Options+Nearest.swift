import Base

extension Option {
    /// `; did you mean http?`, or where to look.
    static func advice(instead name: some StringProtocol, of options: [Option] = all) -> String {
        guard let meant = NearestName.of(String(name), among: options.map(\.name)) else {
            return "; rostrum --help lists them all"
        }
        return "; did you mean \(meant)?"
    }
}
