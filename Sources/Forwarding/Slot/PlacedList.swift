/// A list whose elements know their places, so that one is taken out without a walk over the others.
///
/// Publishers and hosts can have all viewers of a track go from one list to another at once: were each looked for, that
/// would cost the square of their number. The last element moves to the place of one that goes, so the order follows
/// from who came and went alone, and is the same in each run.
struct PlacedList<Element: AnyObject> {
    /// In the order of their places.
    private(set) var elements: [Element] = []
    /// Where an element keeps its place; nil while it is in no list of this kind.
    ///
    /// It may be in one of them at a time.
    private let place: ReferenceWritableKeyPath<Element, Int?>

    init(_ place: ReferenceWritableKeyPath<Element, Int?>) {
        self.place = place
    }

    var isEmpty: Bool { elements.isEmpty }
    var count: Int { elements.count }
    var first: Element? { elements.first }

    /// - Parameter index: below `count`.
    subscript(index: Int) -> Element { elements[index] }

    func contains(_ element: Element) -> Bool { index(of: element) != nil }

    /// Adds an element that is in no list of this kind, as the last one.
    mutating func append(_ element: Element) {
        assert(element[keyPath: place] == nil, "an element is in one list of a kind")
        guard !contains(element) else { return }
        element[keyPath: place] = elements.count
        elements.append(element)
    }

    /// Takes an element out, if it is in this list.
    mutating func remove(_ element: Element) {
        guard let index = index(of: element), let last = elements.popLast() else { return }
        element[keyPath: place] = nil
        guard last !== element else { return }
        elements[index] = last
        last[keyPath: place] = index
    }

    /// Takes all elements out, and gives their memory back.
    mutating func takeAll() -> [Element] {
        defer { elements = [] }
        for element in elements { element[keyPath: place] = nil }
        return elements
    }

    private func index(of element: Element) -> Int? {
        guard let index = element[keyPath: place], elements.indices.contains(index),
            elements[index] === element
        else { return nil }
        return index
    }
}
