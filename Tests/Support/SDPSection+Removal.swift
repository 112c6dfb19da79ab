import Wire

extension SDPSection {
    /// Removes every attribute of that name, as a peer that leaves it out.
    package mutating func removeAll(_ name: SDPAttribute.Name) {
        attributes.removeAll { $0.name == name }
    }
}
