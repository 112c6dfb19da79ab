/// A connection as libwebsockets knows it (`struct lws`), from its adoption to `LWS_CALLBACK_WSI_DESTROY`.
///
/// A name by which tables here know it: looking one up reads nothing behind it. Only calls of the library do, and the
/// library says that a connection ends before it frees it; from then on no table has it.
@safe struct LibraryConnection: Hashable {
    let pointer: OpaquePointer

    static func == (left: LibraryConnection, right: LibraryConnection) -> Bool {
        unsafe left.pointer == right.pointer
    }

    func hash(into hasher: inout Hasher) { unsafe hasher.combine(pointer) }
}
