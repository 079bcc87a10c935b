extension RawSpan {
    /// The byte at an offset, which is checked: the load is called unsafe for types whose bits mean more than a byte's.
    func byte(at offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}
