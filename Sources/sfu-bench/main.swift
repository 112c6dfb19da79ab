print("sfu-bench")
