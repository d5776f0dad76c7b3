"""The contestants: each module opens the jobs it can do and serves them over its pipe.

Jobs so far, each from the arguments of a case to what is called and timed:

    hidden(model, array)   token ids [B, L] to hidden states [B, L, W]
    embed(model, texts)    texts to vectors, all at once, as its own users call it
    vectors(model, pieces, precision)   the same, the next list of texts in each call
    query(model, texts)    the same, one call for each text
    tokenize(model, text, before)   a file of documents to their ids in a row; the file `before` has been read by then
    shards(model, text)             a file of documents to what training reads, on disk; answered by all ids in a row
    pretrain(model, follows, checked, clip, array)   a step of MLM + NSP on the next batch; answered by losses
    pretrain_memory(calls, …)               the same so many times; answered by bytes before, and at most
    assemble(model, corpus, words, array)   a batch [B, L] with masks, of pieces or words; answered by what they hide
"""
