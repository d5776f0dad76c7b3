"""Models as files that other programs run: ONNX, OpenVINO, torch.export; each checked against its source."""
