/// A list whose elements store their own places, so that one is removed without a search.
///
/// A publisher or host can make all viewers of a track change lists at once; a search for each would cost the square
/// of their number. On removal the last element moves to the free place. So the order depends only on insertions and
/// removals, and is the same in each run.
struct PlacedList<Element: AnyObject> {
    /// The elements in the order of their places.
    private(set) var elements: [Element] = []
    /// The property in which an element stores its place; nil while it is in no list of this kind.
    ///
    /// An element may be in one list of a kind at a time.
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

    /// Appends an element that is in no list of this kind.
    mutating func append(_ element: Element) {
        assert(element[keyPath: place] == nil, "an element is in one list of a kind")
        guard !contains(element) else { return }
        element[keyPath: place] = elements.count
        elements.append(element)
    }

    /// Removes an element, if it is in this list.
    mutating func remove(_ element: Element) {
        guard let index = index(of: element), let last = elements.popLast() else { return }
        element[keyPath: place] = nil
        guard last !== element else { return }
        elements[index] = last
        last[keyPath: place] = index
    }

    /// Removes and returns all elements, and releases the list's memory.
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
